// SPDX-License-Identifier: GPL-2.0
/*
 * Tiering: pages that are read are promoted one by one, at hinting faults, and reclaim demotes
 * those that are not, up to 32 at a time. It is the demotion that flushes: a hinted PTE is in
 * nobody's TLB, unless a second reader met it on the way. So that there is as much to demote as
 * was promoted, the window that is left is declared cold.
 */

#include <sys/mman.h>

#include "counters.h"
#include "readers.h"
#include "tiering.h"
#include "util.h"
#include "workload.h"

#define POLL_NS 50000000
/* A window of which not as much as is waited for was promoted by then has no more to give: some looks at it. */
#define WINDOW_NS UINT64_C(8000000000)

static unsigned int window;	/* that the readers read */

static uint64_t promoted(const struct counters *before, const struct counters *after)
{
	return counters_delta(before, after, "pgpromote_success");
}

static uint64_t demoted(const struct counters *before, const struct counters *after)
{
	return counters_delta(before, after, "pgdemote_kswapd") +
	       counters_delta(before, after, "pgdemote_direct") +
	       counters_delta(before, after, "pgdemote_khugepaged") +
	       counters_delta(before, after, "pgdemote_proactive");
}

/* Until nearly all of the window's pages were promoted, or the window has no more to give. */
static void await_promotion(size_t window_pages)
{
	uint64_t deadline = clock_ns() + WINDOW_NS;
	struct counters before, now;

	counters_read(&before);
	do {
		sleep_ns(POLL_NS);
		counters_read(&now);
	} while (promoted(&before, &now) < window_pages / 64 * 63 && clock_ns() < deadline);
}

/*
 * What is only hinted at and may be ignored: then less is demoted. A flush is pending all the while, so not while pages
 * are promoted.
 */
static void cool(const struct target *target, unsigned int which, size_t bytes)
{
	madvise(target->base + which * bytes, bytes, MADV_COLD);
}

/* The readers go on to the next window, which is promoted; the one that they leave is demoted. */
static void next_window(const struct target *target, const struct options *options)
{
	unsigned int windows = options->workload->windows;
	size_t pages = target->pages / windows;

	readers_shift((window + 1) % windows);
	await_promotion(pages);
	cool(target, window, pages * PAGE_BYTES);
	tiering_demote(options->from, pages * PAGE_BYTES);
	window = (window + 1) % windows;
}

/* All but what is read. */
void prepare_hinting(const struct target *target, const struct options *options)
{
	tiering_demote(options->from, target->bytes);
}

struct work run_hinting(const struct target *target, const struct options *options)
{
	uint64_t start = clock_ns(), limit = options->limit_s * UINT64_C(1000000000);
	struct counters before, now;
	struct work work = { 0 };

	counters_read(&before);
	while (work.moved < options->moves && work.ns < limit) {
		next_window(target, options);
		counters_read(&now);
		work.moved = promoted(&before, &now) + demoted(&before, &now);
		work.failed = counters_delta(&before, &now, "pgmigrate_fail");
		work.ns = clock_ns() - start;
	}
	return work;
}
