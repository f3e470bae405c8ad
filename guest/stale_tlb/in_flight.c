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

static size_t bytes_of(const struct bed *bed)
{
	return bed->pages * PAGE_BYTES;
}

static void open_window(struct bed *bed)
{
	bed_map_anon(bed, bed->pages);
	elsewhere = bed->base;
	bed_map_anon(bed, bed->pages + PADDING);
	bed_pad(bed, 0, PADDING);
	worker_start(&mover, bed, bed->cpus[1], bed_move);
}

static void close_window(struct bed *bed)
{
	(void)bed;
	worker_stop(&mover);
}

static void arrange(struct bed *bed)
{
	const int *nodes = bed->options->nodes;
	int node = nodes[0] + nodes[1] - bed_other_node(bed, bed->base + bytes_of(bed));

	if (mmap(bed->base, bytes_of(bed), BOTH, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		die(EXIT_FAILED, "no memory: %m");
	madvise(bed->base, bytes_of(bed), MADV_NOHUGEPAGE);
	/* Where the padding is, or it would stay behind. */
	node_bind(bed->base, bytes_of(bed), node);
	bed_write(bed->base, bed->pages, bed->old);
	mprotect(bed->base, bytes_of(bed), PROT_READ);
}

static bool act_munmap(struct bed *bed)
{
	return !munmap(bed->base, bytes_of(bed));
}

static bool act_none(struct bed *bed)
{
	return !mprotect(bed->base, bytes_of(bed), PROT_NONE);
}

static bool act_dontneed(struct bed *bed)
{
	return !madvise(bed->base, bytes_of(bed), MADV_DONTNEED);
}

static bool act_mremap(struct bed *bed)
{
	return mremap(bed->base, bytes_of(bed), bytes_of(bed), MREMAP_MAYMOVE | MREMAP_FIXED, elsewhere) != MAP_FAILED;
}

/* What has been moved is what it was, wherever it is. */
static void check_elsewhere(struct bed *bed)
{
	uint64_t value;

	if (bed->event->act != act_mremap)
		return;
	for (size_t i = 0; i < bed->pages; i++)
		if (!guarded_read(elsewhere + i * PAGE_BYTES, &value) || value != word(bed->old, i)) {
			bed_broken(bed, "page %zu is not what it was at its new address", i);
			return;
		}
}

static void round_window(struct bed *bed)
{
	bool acted;

	arrange(bed);
	bed_touch(bed);
	/* The moment that matters most, and any other one. */
	if (bed_random(bed, 2))
		worker_begin_until(&mover, bed_under_way);
	else
		worker_begin(&mover);
	acted = bed->event->act(bed);
	if (!acted)
		bed_broken(bed, "%s: %s", bed->event->name, strerror(errno));
	bed_judge(bed, bed->event->sees);
	worker_wait(&mover);
	check_elsewhere(bed);
	bed->report->acted += acted;
	bed->report->deferred += bed->was_deferred;
}

const struct event window_events[] = {
	{
		.name = "munmap", .what = "munmap(2) while the pages are under way",
		.pages = WINDOW_PAGES, .sees = SEES_FAULT, .deferred = 5, .acted = 100,
		.open = open_window, .round = round_window, .act = act_munmap, .close = close_window,
	}, {
		.name = "mprotect_none", .what = "mprotect(2) to PROT_NONE meanwhile",
		.pages = WINDOW_PAGES, .sees = SEES_FAULT, .deferred = 5, .acted = 100,
		.open = open_window, .round = round_window, .act = act_none, .close = close_window,
	}, {
		.name = "dontneed", .what = "MADV_DONTNEED meanwhile",
		.pages = WINDOW_PAGES, .sees = SEES_ZERO, .deferred = 5, .acted = 100,
		.open = open_window, .round = round_window, .act = act_dontneed, .close = close_window,
	}, {
		.name = "mremap", .what = "mremap(2) meanwhile",
		.pages = REMAPPED_PAGES, .sees = SEES_FAULT, .deferred = 5, .acted = 100,
		.open = open_window, .round = round_window, .act = act_mremap, .close = close_window,
	},
	{ 0 }
};
