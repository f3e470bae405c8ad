// SPDX-License-Identifier: GPL-2.0
/*
 * Page table changes during a move: migration entries, or PTEs of the copies, are in place and the flush is deferred,
 * so code that meets one of them may find nothing to flush. A worker moves all pages in one call; this thread changes
 * the page tables when all pages are unmapped, or at a random time.
 */
#include "fixture.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "folio.h"
#include "util.h"
#include "worker.h"

/* The kernel flushes this many one by one; for more it flushes the whole mm, which would hide a missing flush. */
#define MAX_FLUSHED_PAGES 32
/* mremap() flushes all that it moves if one page of it is mapped. */
#define REMAPPED_PAGES 2
/* The padding follows the pages in a move, or precedes them: for a time all of the pages are unmapped. */
#define PADDING 384
/*
 * Page tables in front of the pages. All but the first, which has the padding, have no page and are of the pages' VMA.
 * mprotect() first changes the VMA, and while it walks these tables the move maps the pages again, with the new
 * protection.
 */
#define EMPTY_TABLES 512
#define TABLE_BYTES ((size_t)2 * 1024 * 1024)

static struct worker mover;
static char *remap_target;

static bool trigger_mremap(struct fixture *fx);

static void fixture_setup_in_flight(struct fixture *fx)
{
	fixture_map_anon(fx, fx->pages);
	remap_target = fx->base;
	fixture_map_anon(fx, fx->pages + PADDING);
	fixture_add_padding(fx, 0, PADDING);
	worker_start(&mover, fx, fx->cpus[WORKER_CPU], fixture_move);
}

static void fixture_setup_walked(struct fixture *fx)
{
	size_t bytes = EMPTY_TABLES * TABLE_BYTES;
	size_t empty_pages = bytes / PAGE_BYTES;

	fixture_map_anon(fx, PADDING + empty_pages + fx->pages);
	/* All is unmapped when the last page is, for the padding is unmapped first. */
	fixture_add_padding(fx, PADDING, 0);
	for (size_t at = 0; at < bytes; at += TABLE_BYTES) {
		write_pages(fx->base + at, 1, 0);
		/* The kernel keeps the table: it frees only those that a call empties as a whole. */
		if (madvise(fx->base + at, PAGE_BYTES, MADV_DONTNEED))
			die(EXIT_FAILED, "MADV_DONTNEED: %m");
	}
	fx->base += bytes;
	fx->pages -= empty_pages;
	fx->apart = bytes;
	worker_start(&mover, fx, fx->cpus[WORKER_CPU], fixture_move);
}

static void fixture_teardown_in_flight(struct fixture *fx)
{
	(void)fx;
	worker_stop(&mover);
}

static void setup_in_flight(struct fixture *fx)
{
	int node = fixture_node(fx, fx->base + fixture_bytes(fx));

	fixture_remap_anon(fx, MADV_NOHUGEPAGE);
	/* Allocate on the padding's node, or the padding would not move with the pages. */
	node_bind(fx->base, fixture_bytes(fx), node);
	setup_protected(fx);
	/* mremap() unmaps its target. It finds no page there, or it would flush before it moves the entries. */
	if (fx->test->trigger == trigger_mremap)
		madvise(remap_target, fixture_bytes(fx), MADV_DONTNEED);
}

static bool protect_walked(struct fixture *fx, int protection)
{
	/* A flush of the padding would flush the pages. */
	size_t walked = fx->apart - TABLE_BYTES;

	return !mprotect(fx->base - walked, walked + fixture_bytes(fx), protection);
}

static void setup_walked(struct fixture *fx)
{
	bool done = protect_walked(fx, PROT_READ | PROT_WRITE);

	write_pages(fx->base, fx->pages, fx->old);
	if (!done || !protect_walked(fx, PROT_READ))
		test_error(fx, "mprotect: %s", strerror(errno));
}

static bool trigger_munmap(struct fixture *fx)
{
	return !munmap(fx->base, fixture_bytes(fx));
}

static bool trigger_prot_none(struct fixture *fx)
{
	return !mprotect(fx->base, fixture_bytes(fx), PROT_NONE);
}

static bool trigger_walked(struct fixture *fx)
{
	return protect_walked(fx, PROT_NONE);
}

static bool trigger_dontneed(struct fixture *fx)
{
	return !madvise(fx->base, fixture_bytes(fx), MADV_DONTNEED);
}

static bool trigger_mremap(struct fixture *fx)
{
	size_t bytes = fixture_bytes(fx);

	return mremap(fx->base, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, remap_target) != MAP_FAILED;
}

/* mremap() must not change the content. */
static void check_remapped(struct fixture *fx)
{
	uint64_t value;

	if (fx->test->trigger != trigger_mremap)
		return;
	for (size_t i = 0; i < fx->pages; i++)
		if (!guarded_read(remap_target + i * PAGE_BYTES, &value) || value != page_word(fx->old, i)) {
			test_error(fx, "page %zu has another content at its new address", i);
			return;
		}
}

static void run_in_flight(struct fixture *fx)
{
	bool triggered;

	fx->test->setup(fx);
	fixture_fill_tlb(fx);
	/* In the critical state all pages are unmapped: test it in half of the rounds, a random one in the rest. */
	if (fixture_random(fx, 2))
		worker_begin_until(&mover, fixture_all_unmapped);
	else
		worker_begin(&mover);
	triggered = fx->test->trigger(fx);
	if (!triggered)
		test_error(fx, "%s: %s", fx->test->name, strerror(errno));
	fixture_check(fx, fx->test->expect);
	worker_wait(&mover);
	check_remapped(fx);
	fx->report->triggered += triggered;
	fx->report->deferred += fx->was_deferred;
}

const struct test in_flight_tests[] = {
	{
		.name = "munmap", .description = "munmap(2) during the move",
		.pages = MAX_FLUSHED_PAGES, .expect = EXPECT_FAULT, .min_deferred = 5, .min_triggered = 100,
		.fixture_setup = fixture_setup_in_flight, .fixture_teardown = fixture_teardown_in_flight,
		.setup = setup_in_flight, .run_round = run_in_flight, .trigger = trigger_munmap,
	}, {
		.name = "mprotect_none", .description = "mprotect(2) to PROT_NONE during the move",
		.pages = MAX_FLUSHED_PAGES, .expect = EXPECT_FAULT, .min_deferred = 5, .min_triggered = 100,
		.fixture_setup = fixture_setup_in_flight, .fixture_teardown = fixture_teardown_in_flight,
		.setup = setup_in_flight, .run_round = run_in_flight, .trigger = trigger_prot_none,
	}, {
		.name = "mprotect_walk", .description = "the pages are mapped again while mprotect(2) walks to them",
		.pages = MAX_FLUSHED_PAGES, .expect = EXPECT_FAULT, .min_deferred = 5, .min_triggered = 100,
		.fixture_setup = fixture_setup_walked, .fixture_teardown = fixture_teardown_in_flight,
		.setup = setup_walked, .run_round = run_in_flight, .trigger = trigger_walked,
	}, {
		.name = "dontneed", .description = "MADV_DONTNEED during the move",
		.pages = MAX_FLUSHED_PAGES, .expect = EXPECT_ZERO, .min_deferred = 5, .min_triggered = 100,
		.fixture_setup = fixture_setup_in_flight, .fixture_teardown = fixture_teardown_in_flight,
		.setup = setup_in_flight, .run_round = run_in_flight, .trigger = trigger_dontneed,
	}, {
		.name = "mremap", .description = "mremap(2) during the move",
		.pages = REMAPPED_PAGES, .expect = EXPECT_FAULT, .min_deferred = 5, .min_triggered = 100,
		.fixture_setup = fixture_setup_in_flight, .fixture_teardown = fixture_teardown_in_flight,
		.setup = setup_in_flight, .run_round = run_in_flight, .trigger = trigger_mremap,
	},
	{ 0 }
};
