// SPDX-License-Identifier: GPL-2.0
/*
 * Tiering: hinting faults promote the pages that are read, one by one, and reclaim demotes the others, up to 32 at a
 * time. The demotions cause the TLB flushes: a PTE at which a hinting fault is due is in no TLB, unless a second reader
 * faults at it before the page moves. The window that the readers leave is declared cold, so that reclaim finds as much
 * to demote as was promoted.
 */
#include <sys/mman.h>

#include "counters.h"
#include "readers.h"
#include "tiering.h"
#include "util.h"
#include "workload.h"

#define POLL_NS 50000000
/* If the kernel has not promoted enough of a window by then, it never does: a few pages fail. */
#define WINDOW_NS UINT64_C(8000000000)

static unsigned int window;	/* that the readers read */

static uint64_t promoted(const struct counters *before, const struct counters *after)
{
	return counters_delta(before, after, "pgpromote_success");
}

/* Let the readers go on to the next window, which is promoted, and demote the one that they leave. */
static void next_window(const struct target *target, const struct options *options)
{
	unsigned int windows = options->workload->windows, left = window;
	size_t pages = target->pages / windows, bytes = pages * PAGE_BYTES;
	uint64_t deadline = clock_ns() + WINDOW_NS;
	struct counters before, now;

	window = (window + 1) % windows;
	readers_shift(window);
	counters_read(&before);
	do {
		sleep_ns(POLL_NS);
		counters_read(&now);
	} while (promoted(&before, &now) < pages / 64 * 63 && clock_ns() < deadline);
	/*
	 * A hint that may be ignored: then less is demoted. It makes TLB flushes pending, so it does not come while
	 * pages are promoted.
	 */
	madvise(target->base + left * bytes, bytes, MADV_COLD);
	tiering_demote(options->from, bytes);
}

struct work run_hinting(const struct target *target, const struct options *options)
{
	static const char *const demoted[] = {
		"pgdemote_kswapd", "pgdemote_direct", "pgdemote_khugepaged", "pgdemote_proactive",
	};
	uint64_t start = clock_ns(), limit = options->limit_s * UINT64_C(1000000000);
	struct counters before, now;
	struct work work = { 0 };

	counters_read(&before);
	while (work.moved < options->moves && work.ns < limit) {
		next_window(target, options);
		counters_read(&now);
		work.moved = promoted(&before, &now);
		for (size_t i = 0; i < ARRAY_SIZE(demoted); i++)
			work.moved += counters_delta(&before, &now, demoted[i]);
		work.failed = counters_delta(&before, &now, "pgmigrate_fail");
		work.ns = clock_ns() - start;
	}
	return work;
}
