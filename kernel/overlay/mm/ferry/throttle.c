// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Limits of the rate of migration
 *
 * max_bytes_per_s of a reason bounds what all tasks together migrate for it.
 * migrate_pages() charges the pages that it moved: ferry_charge() moves the
 * time at which the next bytes are due. ferry_throttle() lets a task sleep
 * until that time before it looks for the next folios. So nothing is isolated
 * or locked during the sleep, and a fatal signal ends it at once. So does the
 * exit or execve() of the process whose memory is migrated: the task that
 * migrates has the last reference to the address space, and keeps its memory.
 *
 * A task looks for a slice of folios at a time, so that the memory bandwidth is
 * not its alone for long. A slice has a cost of its own, since it ends in a
 * drain of the LRU batches, so it must not be small either. move_pages(2)
 * counts a slice in pages, whose sizes it does not know before:
 * ferry_slice_next() has the next slice twice as large if the pause was short,
 * and half as large if it was long. migrate_pages(2) walks the page tables:
 * ferry_range_full() ends the walk after the page table, or the huge page, with
 * which it has queued FERRY_SLICE_BYTES. So a walk over a range without memory
 * is never divided, and one that is divided goes on behind the last huge page.
 *
 * A worker has no limit, but is charged: other tasks wait for it. That of
 * cpusets holds up each task that writes cpuset.mems, unkillably. A call of
 * move_pages(2) that began without a limit is not divided, and is charged at
 * its end. Either may be charged for hours. So no charge moves the due time
 * beyond FERRY_DEBT_NS from now, and no task waits for longer after the last
 * one. kdamond, for which no task waits, skips for as long as is due.
 *
 * Tasks that write to DAMON's files wait for kdamond, unkillably too, so it
 * does not sleep. ferry_must_skip() tells it to skip the schemes that migrate,
 * as it skips those with a full quota, until the due time. Between two looks at
 * that time it migrates one region.
 *
 * A task that was late migrates as much as was due until then, but no more than
 * is due in FERRY_BURST_NS. A scheme of DAMON is always late, by the time since
 * it was applied last, and needs all that was due in between to reach the
 * limit. It may use all that is due in two apply intervals: kdamond counts an
 * interval in samples, which take longer than their nominal time.
 *
 * Callers that must not sleep for long (compaction, demotion, offlining, NUMA
 * balancing) have no limit. NUMA balancing and DAMON have limits of their own,
 * numa_balancing_promote_rate_limit_MBps and the quotas of a scheme.
 *
 * Locking: ferry_rate_mutex, which writers of a limit take, is for the static
 * key. A due time is a single word.
 */

#include <linux/freezer.h>
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/math64.h>
#include <linux/mutex.h>
#include <linux/sched/signal.h>

#include "../internal.h"
#include "internal.h"

/* A changed limit is noticed after this time, at the latest. */
#define FERRY_PAUSE_NS		(100 * NSEC_PER_MSEC)
#define FERRY_BURST_NS		(100 * NSEC_PER_MSEC)
/* Some tasks at once, with slices of huge folios, exceed a limit of few MiB. */
#define FERRY_DEBT_NS		(60 * NSEC_PER_SEC)
/* A longer pause is for a slice that was too large. */
#define FERRY_LONG_PAUSE_NS	(400 * NSEC_PER_MSEC)
#define FERRY_SHORT_PAUSE_NS	(100 * NSEC_PER_MSEC)

#define FERRY_FIRST_SLICE	8UL
#define FERRY_LARGEST_SLICE	512UL

DEFINE_STATIC_KEY_FALSE(ferry_throttled);

/**
 * struct ferry_rate_limit - the limit of a reason
 * @max_bytes_per_s: the limit, 0 for none
 * @burst_ns:	a task may be late by this, or FERRY_BURST_NS if that is longer:
 *		two of the longest interval of a scheme since the limit was set
 * @due:	time at which more may be migrated, in ns of ktime_get_ns()
 * @skipped:	time at which a scheme was last skipped, 0 if it was not
 * @slept_ns:	time that tasks have slept, or that schemes were skipped for
 */
struct ferry_rate_limit {
	unsigned long max_bytes_per_s;
	s64 burst_ns;
	atomic64_t due;
	atomic64_t skipped;
	atomic64_t slept_ns;
};

static struct ferry_rate_limit ferry_rate_limits[FERRY_NR_REASONS];
static DEFINE_MUTEX(ferry_rate_mutex);	/* writers of max_bytes_per_s */

/**
 * ferry_has_rate_limit() - check whether tasks obey a limit
 * @reason: the reason
 *
 * Return: true if its callers call ferry_throttle() or ferry_must_skip().
 */
bool ferry_has_rate_limit(enum migrate_reason reason)
{
	return reason == MR_SYSCALL || reason == MR_DAMON;
}

/**
 * ferry_get_rate_limit() - the limit of a reason
 * @reason: the reason
 *
 * Return: bytes per second, 0 for no limit.
 */
unsigned long ferry_get_rate_limit(enum migrate_reason reason)
{
	return READ_ONCE(ferry_rate_limits[reason].max_bytes_per_s);
}

/**
 * ferry_set_rate_limit() - set the limit of a reason
 * @reason:	the reason
 * @max:	bytes per second, 0 for no limit
 *
 * Context: process context.
 */
void ferry_set_rate_limit(enum migrate_reason reason, unsigned long max)
{
	struct ferry_rate_limit *limit = &ferry_rate_limits[reason];
	unsigned long old;

	guard(mutex)(&ferry_rate_mutex);
	old = limit->max_bytes_per_s;
	WRITE_ONCE(limit->max_bytes_per_s, max);
	WRITE_ONCE(limit->burst_ns, 0);
	/*
	 * A time that is due under the old limit is too late, or too early.
	 * Pairs with ferry_charge(), which must not add to this one a time by
	 * the old limit.
	 */
	atomic64_set_release(&limit->due, ktime_get_ns());
	atomic64_set(&limit->skipped, 0);
	if (!old && max)
		static_branch_inc(&ferry_throttled);
	else if (old && !max)
		static_branch_dec(&ferry_throttled);
}

/**
 * ferry_slept_ns() - the time that a limit has kept tasks from migrating
 * @reason: the reason
 *
 * Return: nanoseconds, of all sleeping tasks together.
 */
u64 ferry_slept_ns(enum migrate_reason reason)
{
	return atomic64_read(&ferry_rate_limits[reason].slept_ns);
}

/**
 * ferry_charge() - charge a reason for bytes that it migrated
 * @reason:	the reason
 * @bytes:	their number
 *
 * Context: any.
 */
void ferry_charge(enum migrate_reason reason, u64 bytes)
{
	struct ferry_rate_limit *limit = &ferry_rate_limits[reason];
	s64 old, new, now, burst;
	unsigned long max;

	do {
		/* Pairs with ferry_set_rate_limit() */
		old = atomic64_read_acquire(&limit->due);
		max = READ_ONCE(limit->max_bytes_per_s);
		if (!max)
			return;
		burst = max(READ_ONCE(limit->burst_ns), FERRY_BURST_NS);
		now = ktime_get_ns();
		new = max(old, now - burst) +
		      mul_u64_u64_div_u64(bytes, NSEC_PER_SEC, max);
		if (reason == MR_SYSCALL)
			new = min(new, max(old, now + FERRY_DEBT_NS));
	} while (atomic64_cmpxchg(&limit->due, old, new) != old);
}

/**
 * ferry_pause_ns() - how long ferry_throttle() would sleep
 * @reason: the reason
 *
 * Context: any.
 * Return: nanoseconds, 0 or less if it would not.
 */
s64 ferry_pause_ns(enum migrate_reason reason)
{
	const struct ferry_rate_limit *limit = &ferry_rate_limits[reason];

	if (!READ_ONCE(limit->max_bytes_per_s) ||
	    current->flags & PF_WQ_WORKER)
		return 0;
	return atomic64_read(&limit->due) - ktime_get_ns();
}

/**
 * ferry_must_wait() - check whether ferry_throttle() would sleep
 * @reason: the reason
 *
 * Context: any.
 * Return: true if it would.
 */
bool ferry_must_wait(enum migrate_reason reason)
{
	return ferry_pause_ns(reason) > 0;
}

/* Schemes with different intervals share the burst, of the longest of them. */
bool __ferry_must_skip(enum migrate_reason reason, unsigned long interval_us)
{
	struct ferry_rate_limit *limit = &ferry_rate_limits[reason];
	s64 burst = 2 * NSEC_PER_USEC * min(interval_us, U32_MAX);
	s64 now = ktime_get_ns(), due = atomic64_read(&limit->due);
	bool skip = READ_ONCE(limit->max_bytes_per_s) && due > now;
	s64 since;

	if (burst > READ_ONCE(limit->burst_ns))
		WRITE_ONCE(limit->burst_ns, burst);
	since = atomic64_xchg(&limit->skipped, skip ? now : 0);
	/* A longer time is that of a kdamond that did not run. */
	if (since)
		atomic64_add(clamp(min(now, due) - since, 0,
				   max(burst, FERRY_BURST_NS)),
			     &limit->slept_ns);
	return skip;
}

/*
 * The caller has a reference, and each thread of the process has one. Another
 * task with one, as a second caller, keeps both at work.
 */
static bool ferry_is_dead(struct mm_struct *mm)
{
	return mm && atomic_read(&mm->mm_users) == 1;
}

int __ferry_throttle(enum migrate_reason reason, struct mm_struct *mm)
{
	struct ferry_rate_limit *limit = &ferry_rate_limits[reason];
	u64 start = ktime_get_ns();
	ktime_t pause;
	s64 ns;

	might_sleep();
	while ((ns = ferry_pause_ns(reason)) > 0 &&
	       !fatal_signal_pending(current) && !ferry_is_dead(mm)) {
		pause = ns_to_ktime(min(ns, FERRY_PAUSE_NS));
		set_current_state(TASK_KILLABLE | TASK_FREEZABLE);
		schedule_hrtimeout_range(&pause, NSEC_PER_MSEC,
					 HRTIMER_MODE_REL);
	}
	atomic64_add(ktime_get_ns() - start, &limit->slept_ns);
	if (ns <= 0)
		return 0;
	return fatal_signal_pending(current) ? -EINTR : -ESRCH;
}

unsigned long __ferry_slice_next(struct ferry_slice *slice,
				 enum migrate_reason reason, unsigned long nr)
{
	s64 ns = ferry_pause_ns(reason);

	if (!ferry_get_rate_limit(reason))
		return nr;
	if (!slice->nr)
		slice->nr = FERRY_FIRST_SLICE;
	else if (ns > FERRY_LONG_PAUSE_NS)
		slice->nr = max(slice->nr / 2, 1UL);
	else if (ns < FERRY_SHORT_PAUSE_NS)
		slice->nr = min(slice->nr * 2, FERRY_LARGEST_SLICE);
	return min(slice->nr, nr);
}

bool __ferry_range_full(struct ferry_range *range, struct list_head *folios,
			unsigned long next)
{
	struct list_head *pos = range->last ?: folios;

	if (!ferry_get_rate_limit(MR_SYSCALL) || current->flags & PF_WQ_WORKER)
		return false;
	list_for_each_continue(pos, folios)
		range->bytes += folio_size(list_entry(pos, struct folio, lru));
	range->last = folios->prev;
	if (range->bytes < FERRY_SLICE_BYTES)
		return false;
	*range = (struct ferry_range) { .next = next };
	return true;
}

/* See ferry_range_begin(). */
int __ferry_range_begin(struct mm_struct *mm)
{
	int err;

	if (fatal_signal_pending(current))
		return -EINTR;
	if (!ferry_must_wait(MR_SYSCALL))
		return 0;
	/* No other task should do without LRU batches until then */
	lru_cache_enable();
	err = __ferry_throttle(MR_SYSCALL, mm);
	lru_cache_disable();
	return err;
}
