// SPDX-License-Identifier: GPL-2.0
/* The quarantine keeps its bound, and gives way when memory is short. */
#include "fixture.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "folio.h"
#include "sysfs.h"
#include "util.h"

#define BOUND 65536
#define BOUND_TEXT "65536"
#define BOUND_PAGES 64		/* four times the bound */
#define PRESSURE_BYTES ((size_t)6 << 20)
/* Above where reclaim begins: for what moves, and as much again, or something is reclaimed before its time. */
#define LEFT_BYTES (2 * PRESSURE_BYTES)
#define CHUNK_PAGES MAX_PAGES

static uint64_t peak;
static struct {
	char *base;
	size_t bytes;
} ballast[2];

static uint64_t full(void)
{
	return migrc_number("counters/skipped_full") + migrc_number("counters/flushed_full");
}

static void set_or_skip(struct fixture *fx, const char *knob, const char *value)
{
	if (fx->options->off)
		test_skip(fx, "there is no quarantine");
	if (!migrc_set(knob, value))
		die(EXIT_FAILED, "%s: %m", knob);
}

static void fixture_setup_bound(struct fixture *fx)
{
	set_or_skip(fx, "max_bytes", BOUND_TEXT);
	migrc_write("drain", "1");
	peak = migrc_number("peak_bytes");
	fixture_map_anon(fx, fx->pages);
}

static void make_read_only(struct fixture *fx)
{
	mprotect(fx->base, fx->pages * PAGE_BYTES, PROT_READ | PROT_WRITE);
	write_pages(fx->base, fx->pages, fx->old);
	mprotect(fx->base, fx->pages * PAGE_BYTES, PROT_READ);
}

static void check_bound(struct fixture *fx)
{
	uint64_t now = migrc_number("quarantined_bytes"), most = migrc_number("peak_bytes");

	if (now > BOUND)
		test_error(fx, "%" PRIu64 " bytes are in quarantine, more than max_bytes", now);
	if (most > peak && most > BOUND)
		test_error(fx, "%" PRIu64 " bytes were in quarantine, more than max_bytes", most);
}

static void run_bound(struct fixture *fx)
{
	uint64_t before = full();

	make_read_only(fx);
	fixture_fill_tlb(fx);
	fixture_move(fx);
	check_bound(fx);
	fixture_check(fx, EXPECT_OLD);
	make_read_only(fx);
	fixture_check(fx, EXPECT_OLD);
	check_bound(fx);
	fx->report->triggered += full() > before;
	fx->report->deferred += fx->was_deferred;
}

/* What the kernel keeps for itself, and a quarter more, where reclaim begins. */
static size_t reserve_bytes(void)
{
	char value[32];

	return sysfs_read_line("/proc/sys/vm/min_free_kbytes", value, sizeof(value)) ? strtoull(value, NULL, 10) * 1280 : 0;
}

/* All but what is left of a node's memory is taken for all rounds, or each would take it anew, page by page. */
static void take_ballast(struct fixture *fx, unsigned int which)
{
	int node = fx->options->nodes[which];
	uint64_t free_bytes = node_free_kb(node) * 1024;
	/* Half of the reserve: the nodes are two. */
	size_t left = LEFT_BYTES + reserve_bytes() / 2, bytes;
	char *base;

	if (free_bytes <= left)
		test_skip(fx, "node %d has less than %zu MiB free", node, left >> 20);
	bytes = (free_bytes - left) / PAGE_BYTES * PAGE_BYTES;
	base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		die(EXIT_FAILED, "cannot map %zu bytes: %m", bytes);
	node_bind(base, bytes, node);
	/* Sooner had; a kernel without THP has none to give. */
	madvise(base, bytes, MADV_HUGEPAGE);
	madvise(base, bytes, MADV_DONTFORK);
	for (size_t at = 0; at < bytes; at += PAGE_BYTES)
		base[at] = 1;
	ballast[which].base = base;
	ballast[which].bytes = bytes;
}

static void fixture_teardown_pressure(struct fixture *fx)
{
	(void)fx;
	for (unsigned int i = 0; i < 2; i++)
		munmap(ballast[i].base, ballast[i].bytes);
}

static void fixture_setup_pressure(struct fixture *fx)
{
	char most[32];

	snprintf(most, sizeof(most), "%zu", 2 * PRESSURE_BYTES);
	set_or_skip(fx, "max_bytes", most);
	set_or_skip(fx, "max_age_ms", "60000");
	sysfs_set_until_exit("/proc/sys/vm/percpu_pagelist_high_fraction", "1000000");
	fixture_map_anon(fx, PRESSURE_BYTES / PAGE_BYTES);
	make_read_only(fx);
	for (unsigned int i = 0; i < 2; i++)
		take_ballast(fx, i);
}

/* All of it to the other node, a part at a time. */
static void move_parts(struct fixture *fx)
{
	struct fixture part = *fx;

	for (size_t at = 0; at < fx->pages; at += CHUNK_PAGES) {
		part.base = fx->base + at * PAGE_BYTES;
		part.pages = fx->pages - at < CHUNK_PAGES ? fx->pages - at : CHUNK_PAGES;
		fixture_move(&part);
		fx->was_deferred |= part.was_deferred;
	}
}

/* Free pages that another CPU keeps at hand cannot be had by a program: let there be few. Each look takes an eighth. */
static void empty_lists(void)
{
	char value[32];

	for (int i = 0; i < 32; i++)
		sysfs_read_line("/proc/sys/vm/stat_refresh", value, sizeof(value));
}

/* More than can be had without the quarantine, less than with it; its status says whether it got there. */
static int hog(size_t bytes)
{
	pid_t child = fork();
	char *memory;

	if (child)
		return child < 0 ? -1 : reap_child(child);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sysfs_write("/proc/self/oom_score_adj", "1000");
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		_exit(1);
	for (size_t at = 0; at < bytes; at += PAGE_BYTES)
		memory[at] = 1;
	_exit(0);
}

static void run_pressure(struct fixture *fx)
{
	uint64_t held, left;

	fx->was_deferred = false;
	make_read_only(fx);
	reader_sample(fx->reader, fx->base, CHUNK_PAGES);
	move_parts(fx);
	empty_lists();
	held = migrc_number("quarantined_bytes");
	if (hog(nodes_free_kb() * 1024 + held / 2 - reserve_bytes()))
		test_error(fx, "a program could not have half of the quarantine's %" PRIu64 " bytes", held);
	/* Now and then the program finds other memory, which is no fault. */
	left = migrc_number("quarantined_bytes");
	for (size_t i = 0; i < fx->pages; i++)
		if (*(volatile uint64_t *)(fx->base + i * PAGE_BYTES) != page_word(fx->old, i)) {
			test_stale(fx, "page %zu is not what it was", i);
			break;
		}
	fx->report->triggered += held > left;
	fx->report->deferred += fx->was_deferred;
}

const struct test quarantine_tests[] = {
	{
		.name = "max_bytes", .description = "four times as much moves as the quarantine may hold",
		.pages = BOUND_PAGES, .min_deferred = 1, .min_triggered = 50,
		.fixture_setup = fixture_setup_bound, .run_round = run_bound,
	}, {
		.name = "pressure", .description = "a program wants more memory than is free without the quarantine",
		.machine = true, .min_deferred = 50, .min_triggered = 75,
		.fixture_setup = fixture_setup_pressure, .fixture_teardown = fixture_teardown_pressure,
		.run_round = run_pressure,
	},
	{ 0 }
};
