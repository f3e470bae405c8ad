// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Which way is fastest here
 *
 * Streaming stores win by a factor of two on one CPU and lose on the next. So every way has
 * a few chunks of the range itself to show what it can do: the work is done once, whoever
 * does it, and the measurement costs only what the losers are slower. Each way keeps its
 * best time, which neither a first touch nor a preemption spoils.
 *
 * A verdict is remembered per layout once a template won clearly; a close one, as the first
 * binding yields when the host has yet to find the memory, is sought again with the next
 * range. Ranges too small for a contest are written as was last remembered, or as ever.
 *
 * Lock order: none; verdicts are words that are read and written whole.
 */

#include <linux/math64.h>
#include <linux/memcpy_streaming.h>
#include <linux/mm.h>
#include <linux/sched/clock.h>

#include "internal.h"

/* The first turn of each warms up translations, and is not counted. */
#define MEMMAP_CONTEST_ROUNDS	5
/* A contest is for ranges of which it is a small part. */
#define MEMMAP_CONTEST_SHARE	4

/* Percent of the best time so far that takes the lead, and of the slow path's that settles it. */
#define MEMMAP_LEADS_PCT	97
#define MEMMAP_SETTLES_PCT	90

/* By layout: single pages, compounds. MEMMAP_FIELDS: not settled. */
static enum memmap_method memmap_verdicts[2];

static bool memmap_may_enter(const struct memmap_range *range, enum memmap_method method)
{
	return method != MEMMAP_STREAMING || memcpy_can_stream(range->pages, sizeof(struct page));
}

/* Time for a chunk by @method, in ns as if it were a whole one; it is then done. */
static u64 memmap_turn(const struct memmap_job *job, enum memmap_method method,
		       unsigned long *pfn)
{
	unsigned long end = memmap_chunk_end(job->range, *pfn), nr = end - *pfn;
	u64 ns = local_clock();

	memmap_init_chunk(job, method, *pfn, end);
	ns = local_clock() - ns;
	*pfn = end;
	cond_resched();
	return mul_u64_u64_div_u64(ns, MEMMAP_CHUNK_PFNS, nr);
}

static enum memmap_method memmap_judge(const u64 *best)
{
	enum memmap_method method, leader = MEMMAP_FIELDS;

	for (method = leader + 1; method < MEMMAP_NR_METHODS; method++)
		if (best[method] < best[leader] / 100 * MEMMAP_LEADS_PCT)
			leader = method;
	return leader;
}

/**
 * memmap_contest() - find the fastest way to write a range
 * @job:	the range and its template
 * @pfn:	where it begins; moves on by what was done meanwhile
 *
 * Context: process context, may sleep.
 * Return: the way.
 */
enum memmap_method __ref memmap_contest(const struct memmap_job *job, unsigned long *pfn)
{
	const struct memmap_range *range = job->range;
	unsigned long turns = MEMMAP_CONTEST_ROUNDS * MEMMAP_NR_METHODS;
	enum memmap_method *verdict = &memmap_verdicts[!!range->pgmap->vmemmap_shift];
	enum memmap_method method = READ_ONCE(*verdict);
	unsigned long chunk = max(MEMMAP_CHUNK_PFNS, pgmap_vmemmap_nr(range->pgmap));
	u64 best[MEMMAP_NR_METHODS];
	unsigned int round;

	if (method != MEMMAP_FIELDS ||
	    (range->end_pfn - *pfn) / chunk < turns * MEMMAP_CONTEST_SHARE)
		return method;

	memset(best, 0xff, sizeof(best));
	for (round = 0; round < MEMMAP_CONTEST_ROUNDS; round++) {
		for (method = 0; method < MEMMAP_NR_METHODS; method++) {
			u64 ns;

			if (!memmap_may_enter(range, method))
				continue;
			ns = memmap_turn(job, method, pfn);
			if (round)
				best[method] = min(best[method], ns);
		}
	}
	method = memmap_judge(best);
	if (best[method] < best[MEMMAP_FIELDS] / 100 * MEMMAP_SETTLES_PCT)
		WRITE_ONCE(*verdict, method);
	return method;
}
