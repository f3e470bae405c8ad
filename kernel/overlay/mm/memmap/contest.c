// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Which way is fastest here
 *
 * Streaming stores win by far on one CPU and lose on the next. So every way has
 * a few chunks of the range itself to show what it can do: the work is done once, whoever
 * does it, and the measurement costs only what the losers are slower. Each way keeps its
 * best time, which neither a first touch nor a preemption spoils.
 *
 * A verdict is remembered per kind of range once a template won clearly; a close one, as the first
 * binding yields when the host has yet to find the memory, is sought again with the next
 * range. Ranges too small for a contest are written as was last remembered, or as ever.
 *
 * Lock order: none; verdicts are words that are read and written whole.
 */

#include <linux/ktime.h>
#include <linux/copy_nontemporal.h>
#include <linux/mm.h>

#include "internal.h"

/* The first turn of each warms up translations, and is not counted. */
#define MEMMAP_CONTEST_ROUNDS	5
/* A contest is for ranges of which it is a small part. */
#define MEMMAP_CONTEST_SHARE	4

/* Percent of the best time so far that takes the lead, and of the slow path's that settles it. */
#define MEMMAP_LEADS_PCT	97
#define MEMMAP_SETTLES_PCT	90

/* By what is written: pages or compounds, to memory or to the device. FIELDS: not settled. */
static enum memmap_method memmap_verdicts[2][2];

static bool memmap_may_enter(const struct memmap_range *range, enum memmap_method method)
{
	return method != MEMMAP_STREAMING ||
	       copy_nontemporal_possible(range->pages, sizeof(struct page));
}

/* Initialise the chunk at *@pfn. Return the ns that it took. */
static u64 memmap_turn(const struct memmap_job *job, enum memmap_method method,
		       unsigned long *pfn)
{
	unsigned long end = memmap_chunk_end(job->range, *pfn);
	u64 ns = ktime_get_ns();

	memmap_init_chunk(job, method, *pfn, end);
	ns = ktime_get_ns() - ns;
	*pfn = end;
	cond_resched();
	return ns;
}

/**
 * memmap_judge() - which way was fastest?
 * @best:	the best time of each way in ns, 0 if it did not take part
 *
 * Return: the fastest, but the slow path unless another is clearly faster.
 */
enum memmap_method memmap_judge(const u64 *best)
{
	enum memmap_method method, leader = MEMMAP_FIELDS;

	for (method = leader + 1; method < MEMMAP_NR_METHODS; method++)
		if (best[method] && best[method] * 100 < best[leader] * MEMMAP_LEADS_PCT)
			leader = method;
	return leader;
}

/**
 * memmap_contest_forget() - ask again the next time
 *
 * Context: any.
 */
void memmap_contest_forget(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(memmap_verdicts) * ARRAY_SIZE(memmap_verdicts[0]); i++)
		WRITE_ONCE(memmap_verdicts[i / 2][i % 2], MEMMAP_FIELDS);
}

static void memmap_rounds(const struct memmap_job *job, unsigned long *pfn, u64 *best)
{
	enum memmap_method method;
	unsigned int round;

	for (round = 0; round < MEMMAP_CONTEST_ROUNDS; round++) {
		for (method = 0; method < MEMMAP_NR_METHODS; method++) {
			u64 ns;

			if (!memmap_may_enter(job->range, method))
				continue;
			ns = max(memmap_turn(job, method, pfn), 1);
			if (round)
				best[method] = min_not_zero(best[method], ns);
		}
	}
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
	enum memmap_method *verdict =
		&memmap_verdicts[!!range->pgmap->vmemmap_shift][!!range->altmap];
	enum memmap_method method = READ_ONCE(*verdict);
	unsigned long chunk = max(MEMMAP_CHUNK_PFNS, pgmap_vmemmap_nr(range->pgmap));
	u64 best[MEMMAP_NR_METHODS] = {};

	if (method != MEMMAP_FIELDS ||
	    (range->end_pfn - *pfn) / chunk < turns * MEMMAP_CONTEST_SHARE)
		return method;

	/* The first chunk may be a part of one, and the turns are compared with each other. */
	memmap_turn(job, MEMMAP_FIELDS, pfn);
	memmap_rounds(job, pfn, best);
	method = memmap_judge(best);
	if (best[method] * 100 < best[MEMMAP_FIELDS] * MEMMAP_SETTLES_PCT)
		WRITE_ONCE(*verdict, method);
	return method;
}
