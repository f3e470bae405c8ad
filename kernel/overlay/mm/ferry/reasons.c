// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Counters of reasons
 *
 * The pages that each reason of migration moved are counted once for each call
 * of migrate_pages(), on its CPU, with a migrator or without. Their sum over
 * all reasons is pgmigrate_success of /proc/vmstat.
 *
 * The histogram of locked times has a batch in one bucket: the time from before
 * the lock of its first folio until after the unlock of the last. Batches that
 * were gathered for a migrator have one, and parts of a batch that move in runs
 * without a migrator, see mm/ferry_runs/batch.c.
 */

#include <linux/migrate.h>
#include <linux/percpu.h>
#include <linux/time64.h>

#include "internal.h"

static DEFINE_PER_CPU(struct ferry_pages, ferry_pages[FERRY_NR_REASONS]);

struct ferry_locked ferry_locked[FERRY_NR_REASONS];

/**
 * ferry_count_pages() - count the result of a call of migrate_pages()
 * @reason:	its reason
 * @moved:	base pages that it moved
 * @failed:	base pages that it did not
 *
 * Context: any.
 */
void ferry_count_pages(enum migrate_reason reason, unsigned int moved,
		       unsigned int failed)
{
	this_cpu_add(ferry_pages[reason].moved, moved);
	if (failed)
		this_cpu_add(ferry_pages[reason].failed, failed);
	if (static_branch_unlikely(&ferry_throttled))
		ferry_charge(reason, (u64)moved << PAGE_SHIFT);
}

/**
 * ferry_pages_sum() - the pages of a reason
 * @reason: the reason
 *
 * Context: any.
 * Return: the sums over all CPUs.
 */
struct ferry_pages ferry_pages_sum(enum migrate_reason reason)
{
	struct ferry_pages sum = {};
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		sum.moved += per_cpu(ferry_pages[reason].moved, cpu);
		sum.failed += per_cpu(ferry_pages[reason].failed, cpu);
	}
	return sum;
}

/**
 * ferry_count_locked() - count a batch by the time its folios were locked
 * @reason:	its reason
 * @ns:		from the lock of the first folio to the unlock of the last;
 *		below 0 counts as 0: see the clocks in gather.c
 *
 * Context: any.
 */
void ferry_count_locked(enum migrate_reason reason, s64 ns)
{
	struct ferry_locked *locked = &ferry_locked[reason];
	unsigned int i = 0;

	ns = max(ns, 0);
	while (i < FERRY_LOCKED_BUCKETS - 1 &&
	       ns > FERRY_LOCKED_US(i) * NSEC_PER_USEC)
		i++;
	atomic64_inc(&locked->batches[i]);
	atomic64_add(ns, &locked->ns);
}
