// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that processes share moves while each of them allocates, protects and frees memory of its own. Each such call
 * flushes the TLBs of its process anyway; a flush that migration deferred is due at the same time. The kernel that
 * moves pages faster must not look better or worse for it, so the number of calls for each batch of pages is fixed.
 */
#include <numaif.h>

#include "mover.h"
#include "processes.h"
#include "util.h"
#include "workload.h"

/* Reclaim and compaction migrate so many at once, behind one TLB flush. */
#define BATCH_PAGES 32
/* For each batch and by each process: at 1000 calls a second, 100 batches move in a second. */
#define CALLS_PER_BATCH 10

struct work run_active(const struct target *target, const struct options *options)
{
	uint64_t start = clock_ns(), deadline = start + options->limit_s * UINT64_C(1000000000), calls = 0;
	struct work work = { 0 };
	struct mover mover;

	mover_open(&mover, target, options);
	for (size_t left = options->moves; left;) {
		calls += CALLS_PER_BATCH;
		processes_allow(calls);
		/* Others map the pages, too. */
		left -= mover_move(&mover, left < BATCH_PAGES ? left : BATCH_PAGES, MPOL_MF_MOVE_ALL, &work);
		if (!processes_wait(deadline))
			die(EXIT_FAILED, "the processes took longer than %u s for their calls", options->limit_s);
	}
	work.ns = clock_ns() - start;
	work.calls = processes_calls();
	work.calls_per_second = work.calls * UINT64_C(1000000000) / work.ns / options->processes;
	mover_close(&mover);
	return work;
}
