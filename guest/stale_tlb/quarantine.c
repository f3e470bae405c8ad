// SPDX-License-Identifier: GPL-2.0
/* The bound of the quarantine, the age at which it is drained, and its reclaim under memory pressure. */
#include "fixture.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "folio.h"
#include "sysfs.h"
#include "util.h"

#define BOUND 65536
#define BOUND_TEXT "65536"
#define BOUND_PAGES 64		/* four times BOUND */
#define AGE_TEXT "20"		/* ms */
/* Far longer than a drain waits for a CPU. */
#define AGE_LIMIT_NS UINT64_C(10000000000)
#define PRESSURE_BYTES ((size_t)6 << 20)
/* Free memory above the low watermark: for the pages that move, and as much again to prevent early reclaim. */
#define FREE_BYTES (2 * PRESSURE_BYTES)
#define CHUNK_PAGES MAX_PAGES
#define PAUSE_NS 700000000

static uint64_t peak_before;
/* Memory that leaves only FREE_BYTES of each node free. */
static struct {
	char *base;
	size_t bytes;
} filler[2];

static uint64_t full_events(void)
{
	return migrc_number("counters/flushed_full");
}

static void set_or_skip(struct fixture *fx, const char *knob, const char *value)
{
	if (fx->options->off)
		test_skip(fx, "--off leaves no quarantine");
	if (!migrc_set(knob, value))
		die(EXIT_FAILED, "%s: %m", knob);
}

static void fixture_setup_bound(struct fixture *fx)
{
	set_or_skip(fx, "max_bytes", BOUND_TEXT);
	migrc_write("drain", "1");
	peak_before = migrc_number("peak_bytes");
	fixture_map_anon(fx, fx->pages);
}

static void check_bound(struct fixture *fx)
{
	uint64_t now = migrc_number("quarantined_bytes"), peak = migrc_number("peak_bytes");

	if (now > BOUND)
		test_error(fx, "%" PRIu64 " bytes are in quarantine, more than max_bytes", now);
	if (peak > peak_before && peak > BOUND)
		test_error(fx, "%" PRIu64 " bytes were in quarantine, more than max_bytes", peak);
}

static void run_bound(struct fixture *fx)
{
	uint64_t before = full_events();

	setup_protected(fx);
	fixture_fill_tlb(fx);
	fixture_move(fx);
	check_bound(fx);
	fixture_check(fx, EXPECT_OLD);
	setup_protected(fx);
	fixture_check(fx, EXPECT_OLD);
	check_bound(fx);
	fx->report->triggered += full_events() > before;
	fx->report->deferred += fx->was_deferred;
}

static void fixture_setup_age(struct fixture *fx)
{
	set_or_skip(fx, "max_age_ms", AGE_TEXT);
	fixture_map_anon(fx, fx->pages);
}

/* Nothing but their age drains the pages that have moved. */
static void run_age(struct fixture *fx)
{
	uint64_t before = migrc_number("counters/flushed_age"), start;

	setup_protected(fx);
	fixture_fill_tlb(fx);
	fixture_move(fx);
	start = clock_ns();
	while (migrc_number("quarantined_bytes")) {
		if (clock_ns() - start > AGE_LIMIT_NS) {
			test_error(fx, "pages are in quarantine for longer than %" PRIu64 " ms",
				   AGE_LIMIT_NS / 1000000);
			break;
		}
		sleep_ns(1000000);
	}
	/* A drain takes all pages, then flushes, and then is counted. */
	while (migrc_number("counters/flushed_age") == before && clock_ns() - start < AGE_LIMIT_NS)
		sleep_ns(1000000);
	fixture_check(fx, EXPECT_OLD);
	fx->report->triggered += migrc_number("counters/flushed_age") > before;
	fx->report->deferred += fx->was_deferred;
}

/* The low watermark, below which reclaim begins: min_free_kbytes and a quarter more. */
static size_t reserve_bytes(void)
{
	return sysfs_number("/proc/sys/vm/min_free_kbytes") * 1280;
}

/* What only the kernel may use of a node: a task that wants more waits for reclaim. There are two nodes. */
static size_t min_bytes(void)
{
	return sysfs_number("/proc/sys/vm/min_free_kbytes") * 1024 / 2;
}

/* Allocate most of a node's free memory for all rounds; if each round did so, it would do so page by page. */
static void fill_node(struct fixture *fx, unsigned int which)
{
	int node = fx->options->nodes[which];
	uint64_t free_bytes = node_free_kb(node) * 1024;
	/* Half of the reserve, because there are two nodes. */
	size_t keep = FREE_BYTES + reserve_bytes() / 2, bytes;
	char *base;

	if (free_bytes <= keep)
		test_skip(fx, "node %d has less than %zu MiB free", node, keep >> 20);
	bytes = (free_bytes - keep) / PAGE_BYTES * PAGE_BYTES;
	base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		die(EXIT_FAILED, "cannot map %zu bytes: %m", bytes);
	node_bind(base, bytes, node);
	/* THP make this faster, if the kernel has them. */
	madvise(base, bytes, MADV_HUGEPAGE);
	madvise(base, bytes, MADV_DONTFORK);
	for (size_t at = 0; at < bytes; at += PAGE_BYTES)
		base[at] = 1;
	filler[which].base = base;
	filler[which].bytes = bytes;
}

static void fixture_teardown_pressure(struct fixture *fx)
{
	(void)fx;
	for (unsigned int i = 0; i < 2; i++)
		munmap(filler[i].base, filler[i].bytes);
}

static void fixture_setup_pressure(struct fixture *fx)
{
	char max_bytes[32];

	snprintf(max_bytes, sizeof(max_bytes), "%zu", 2 * PRESSURE_BYTES);
	set_or_skip(fx, "max_bytes", max_bytes);
	set_or_skip(fx, "max_age_ms", "60000");
	sysfs_set_until_exit("/proc/sys/vm/percpu_pagelist_high_fraction", "1000000");
	fixture_map_anon(fx, PRESSURE_BYTES / PAGE_BYTES);
	setup_protected(fx);
	for (unsigned int i = 0; i < 2; i++)
		fill_node(fx, i);
}

/* Move all pages to the other node, a part in each call. */
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

/*
 * Allocate memory of a node in a child: more than is free without its quarantine, less than is free with it. Returns the
 * child's status, not 0 if it could not.
 */
static int run_hog(int node, size_t bytes)
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
	node_bind(memory, bytes, node);
	for (size_t at = 0; at < bytes; at += PAGE_BYTES)
		memory[at] = 1;
	_exit(0);
}

static void run_pressure(struct fixture *fx)
{
	uint64_t before, after;
	char unused[32];
	int source;

	fx->was_deferred = false;
	/* After the last round's hog migrc has paused; with what follows this takes longer. */
	sleep_ns(PAUSE_NS);
	setup_protected(fx);
	source = fixture_node(fx, fx->base);
	reader_sample(fx->reader, fx->base, CHUNK_PAGES);
	move_parts(fx);
	/* The hog cannot allocate pages on other CPUs' lists. Each read of stat_refresh frees an eighth of them. */
	for (int i = 0; i < 32; i++)
		sysfs_read_line("/proc/sys/vm/stat_refresh", unused, sizeof(unused));
	before = migrc_number("quarantined_bytes");
	if (run_hog(source, node_free_kb(source) * 1024 + before / 2 - min_bytes()))
		test_error(fx, "a program could not allocate half of the quarantine's %" PRIu64 " bytes", before);
	/* In some rounds the hog gets other memory instead, which is not an error. */
	after = migrc_number("quarantined_bytes");
	for (size_t i = 0; i < fx->pages; i++)
		if (*(volatile uint64_t *)(fx->base + i * PAGE_BYTES) != page_word(fx->old, i)) {
			test_stale(fx, "page %zu has another content", i);
			break;
		}
	fx->report->triggered += before > after;
	fx->report->deferred += fx->was_deferred;
}

const struct test quarantine_tests[] = {
	{
		.name = "max_bytes", .description = "moves of four times max_bytes",
		.pages = BOUND_PAGES, .min_deferred = 1, .min_triggered = 50,
		.fixture_setup = fixture_setup_bound, .run_round = run_bound,
	}, {
		.name = "max_age", .description = "pages wait until they are old",
		.pages = DEFAULT_PAGES, .min_deferred = 50, .min_triggered = 50,
		.fixture_setup = fixture_setup_age, .run_round = run_age,
	}, {
		.name = "pressure", .description = "a program allocates more than is free without the quarantine",
		.machine = true, .slow = true, .min_deferred = 50, .min_triggered = 75,
		.fixture_setup = fixture_setup_pressure, .fixture_teardown = fixture_teardown_pressure,
		.run_round = run_pressure,
	},
	{ 0 }
};
