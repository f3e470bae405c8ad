// SPDX-License-Identifier: GPL-2.0
/*
 * Events that change page tables while the pages are under way: migration entries are in place, the flush is deferred,
 * and who finds such an entry sees nothing to flush. One thread moves all pages in one call, another one acts when all
 * are under way, or at a random moment.
 */
#include "fixture.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "folio.h"
#include "util.h"
#include "worker.h"

/* As many as are flushed one by one: for more the whole address space is, which would cover up for what was left out. */
#define WINDOW_PAGES 32
/* mremap() flushes all that it moves if there is one page among it that is mapped. */
#define REMAPPED_PAGES 2
/* Behind them in a move: while it is at these, all of those are under way. */
#define PADDING 384
#define BOTH (PROT_READ | PROT_WRITE)

static struct worker mover;
static char *elsewhere;

static size_t bytes_of(const struct fixture *fx)
{
	return fx->pages * PAGE_BYTES;
}

static void fixture_setup_window(struct fixture *fx)
{
	fixture_map_anon(fx, fx->pages);
	elsewhere = fx->base;
	fixture_map_anon(fx, fx->pages + PADDING);
	fixture_add_padding(fx, 0, PADDING);
	worker_start(&mover, fx, fx->cpus[WORKER_CPU], fixture_move);
}

static void fixture_teardown_window(struct fixture *fx)
{
	(void)fx;
	worker_stop(&mover);
}

static void setup_pages(struct fixture *fx)
{
	const int *nodes = fx->options->nodes;
	int node = nodes[0] + nodes[1] - fixture_other_node(fx, fx->base + bytes_of(fx));

	if (mmap(fx->base, bytes_of(fx), BOTH, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		die(EXIT_FAILED, "no memory: %m");
	madvise(fx->base, bytes_of(fx), MADV_NOHUGEPAGE);
	/* Where the padding is, or it would stay behind. */
	node_bind(fx->base, bytes_of(fx), node);
	write_pages(fx->base, fx->pages, fx->old);
	mprotect(fx->base, bytes_of(fx), PROT_READ);
}

static bool trigger_munmap(struct fixture *fx)
{
	return !munmap(fx->base, bytes_of(fx));
}

static bool trigger_none(struct fixture *fx)
{
	return !mprotect(fx->base, bytes_of(fx), PROT_NONE);
}

static bool trigger_dontneed(struct fixture *fx)
{
	return !madvise(fx->base, bytes_of(fx), MADV_DONTNEED);
}

static bool trigger_mremap(struct fixture *fx)
{
	return mremap(fx->base, bytes_of(fx), bytes_of(fx), MREMAP_MAYMOVE | MREMAP_FIXED, elsewhere) != MAP_FAILED;
}

/* What has been moved is what it was, wherever it is. */
static void check_elsewhere(struct fixture *fx)
{
	uint64_t value;

	if (fx->test->trigger != trigger_mremap)
		return;
	for (size_t i = 0; i < fx->pages; i++)
		if (!guarded_read(elsewhere + i * PAGE_BYTES, &value) || value != page_word(fx->old, i)) {
			test_error(fx, "page %zu is not what it was at its new address", i);
			return;
		}
}

static void run_window(struct fixture *fx)
{
	bool triggered;

	setup_pages(fx);
	fixture_fill_tlb(fx);
	/* The moment that matters most, and any other one. */
	if (fixture_random(fx, 2))
		worker_begin_until(&mover, fixture_all_unmapped);
	else
		worker_begin(&mover);
	triggered = fx->test->trigger(fx);
	if (!triggered)
		test_error(fx, "%s: %s", fx->test->name, strerror(errno));
	fixture_check(fx, fx->test->expect);
	worker_wait(&mover);
	check_elsewhere(fx);
	fx->report->triggered += triggered;
	fx->report->deferred += fx->was_deferred;
}

const struct test in_flight_tests[] = {
	{
		.name = "munmap", .description = "munmap(2) while the pages are under way",
		.pages = WINDOW_PAGES, .expect = EXPECT_FAULT, .min_deferred = 5, .min_triggered = 100,
		.fixture_setup = fixture_setup_window, .fixture_teardown = fixture_teardown_window,
		.run_round = run_window, .trigger = trigger_munmap,
	}, {
		.name = "mprotect_none", .description = "mprotect(2) to PROT_NONE meanwhile",
		.pages = WINDOW_PAGES, .expect = EXPECT_FAULT, .min_deferred = 5, .min_triggered = 100,
		.fixture_setup = fixture_setup_window, .fixture_teardown = fixture_teardown_window,
		.run_round = run_window, .trigger = trigger_none,
	}, {
		.name = "dontneed", .description = "MADV_DONTNEED meanwhile",
		.pages = WINDOW_PAGES, .expect = EXPECT_ZERO, .min_deferred = 5, .min_triggered = 100,
		.fixture_setup = fixture_setup_window, .fixture_teardown = fixture_teardown_window,
		.run_round = run_window, .trigger = trigger_dontneed,
	}, {
		.name = "mremap", .description = "mremap(2) meanwhile",
		.pages = REMAPPED_PAGES, .expect = EXPECT_FAULT, .min_deferred = 5, .min_triggered = 100,
		.fixture_setup = fixture_setup_window, .fixture_teardown = fixture_teardown_window,
		.run_round = run_window, .trigger = trigger_mremap,
	},
	{ 0 }
};
