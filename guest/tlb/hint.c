// SPDX-License-Identifier: GPL-2.0
/*
 * Tiering: pages that are read are promoted one by one, at hinting faults, and reclaim demotes
 * those that are not, up to 32 at a time. A PTE is read-only after the promotion though its memory
 * is writable, and it is the demotion that flushes: a hinted PTE is in nobody's TLB. So that there is
 * as much to demote as was promoted, the window that is left is declared cold.
 */
#include "clock.h"
#include "events.h"
#include "readers.h"
#include "stamp.h"
#include "tiering.h"
#include "workload.h"

#include <sys/mman.h>

#ifndef MADV_COLD
#define MADV_COLD 20
#endif

#define POLL_NS 50000000
/* A window of which less than half was promoted by then has no more to give. */
#define WINDOW_NS UINT64_C(2000000000)

static uint64_t promoted(const struct events *before, const struct events *after)
{
	return events_delta(before, after, "pgpromote_success");
}

static uint64_t demoted(const struct events *before, const struct events *after)
{
	return events_delta(before, after, "pgdemote_kswapd") +
	       events_delta(before, after, "pgdemote_direct") +
	       events_delta(before, after, "pgdemote_khugepaged") +
	       events_delta(before, after, "pgdemote_proactive");
}

void prepare_hinting(const struct target *target, const struct options *options)
{
	tiering_demote(options->from, target->bytes);
}

/* Until half of the window's pages were promoted, or the window has no more to give. */
static void await_promotion(size_t window_pages)
{
	uint64_t deadline = clock_ns() + WINDOW_NS;
	struct events before, now;

	events_read(&before);
	do {
		sleep_ns(POLL_NS);
		events_read(&now);
	} while (promoted(&before, &now) < window_pages / 2 && clock_ns() < deadline);
}

/* What is only hinted at and may be ignored: then less is demoted. */
static void cool(const struct target *target, unsigned int window, size_t bytes)
{
	madvise(target->base + window * bytes, bytes, MADV_COLD);
}

struct work run_hinting(const struct target *target, const struct options *options)
{
	size_t window_pages = target->pages / options->workload->windows;
	uint64_t start = clock_ns(), limit = options->limit_s * UINT64_C(1000000000);
	struct events before, now;
	struct work work = { 0 };

	events_read(&before);
	for (unsigned int turn = 1; work.moved < options->moves && work.ns < limit; turn++) {
		readers_shift(turn % options->workload->windows);
		cool(target, (turn - 1) % options->workload->windows, window_pages * PAGE_BYTES);
		await_promotion(window_pages);
		/* As much as was promoted at least, so that it finds pages that are no longer read. */
		tiering_demote(options->from, window_pages / 2 * PAGE_BYTES);
		events_read(&now);
		work.moved = promoted(&before, &now) + demoted(&before, &now);
		work.failed = events_delta(&before, &now, "pgmigrate_fail");
		work.ns = clock_ns() - start;
	}
	return work;
}
