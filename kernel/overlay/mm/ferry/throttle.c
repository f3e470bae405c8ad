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
 * and half as large if it was long. migrate_pages(2) and the moves of cpusets
 * count it in address space, FERRY_SLICE_BYTES. DAMON sleeps after each of its
 * regions, outside the time that it counts for the quota of a scheme.
 *
 * A task that was late migrates as much as was due until then, but no more than
 * is due in FERRY_BURST_NS.
 *
 * A worker has no limit, but is charged: other tasks wait for it. That of
 * cpusets holds up each task that writes cpuset.mems, unkillably.
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
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/mutex.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>

#include "internal.h"

/* A changed limit is noticed after this time, at the latest. */
#define FERRY_PAUSE_NS		(100 * NSEC_PER_MSEC)
#define FERRY_BURST_NS		(100 * NSEC_PER_MSEC)
/* A longer pause is for a slice that was too large. */
#define FERRY_LONG_PAUSE_NS	(400 * NSEC_PER_MSEC)
#define FERRY_SHORT_PAUSE_NS	(100 * NSEC_PER_MSEC)

#define FERRY_FIRST_SLICE	8UL
#define FERRY_LARGEST_SLICE	512UL

DEFINE_STATIC_KEY_FALSE(ferry_throttled);

/**
 * struct ferry_rate_limit - the limit of a reason
 * @max_bytes_per_s: the limit, 0 for none
 * @due:	time at which more may be migrated, in ns of ktime_get_ns()
 * @slept_ns:	time that tasks have slept
 */
struct ferry_rate_limit {
	unsigned long max_bytes_per_s;
	atomic64_t due;
	atomic64_t slept_ns;
};

static struct ferry_rate_limit ferry_rate_limits[FERRY_NR_REASONS];
static DEFINE_MUTEX(ferry_rate_mutex);	/* writers of max_bytes_per_s */

/**
 * ferry_has_rate_limit() - check whether tasks obey a limit
 * @reason: the reason
 *
 * Return: true if its callers call ferry_throttle().
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
	/*
	 * A time that is due under the old limit is too late, or too early.
	 * Pairs with ferry_charge(), which must not add to this one a time by
	 * the old limit.
	 */
	atomic64_set_release(&limit->due, ktime_get_ns());
	if (!old && max)
		static_branch_inc(&ferry_throttled);
	else if (old && !max)
		static_branch_dec(&ferry_throttled);
}

/**
 * ferry_slept_ns() - the time that tasks have slept for a limit
 * @reason: the reason
 *
 * Return: nanoseconds, of all tasks together.
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
	unsigned long max;
	s64 old, new;

	do {
		/* Pairs with ferry_set_rate_limit() */
		old = atomic64_read_acquire(&limit->due);
		max = READ_ONCE(limit->max_bytes_per_s);
		if (!max)
			return;
		new = max(old, (s64)(ktime_get_ns() - FERRY_BURST_NS)) +
		      mul_u64_u64_div_u64(bytes, NSEC_PER_SEC, max);
	} while (atomic64_cmpxchg(&limit->due, old, new) != old);
}

/* Return how long a task must sleep now. */
static s64 ferry_pause_ns(const struct ferry_rate_limit *limit)
{
	if (!READ_ONCE(limit->max_bytes_per_s) ||
	    current->flags & PF_WQ_WORKER)
		return 0;
	return atomic64_read(&limit->due) - ktime_get_ns();
}

bool __ferry_must_wait(enum migrate_reason reason)
{
	return ferry_pause_ns(&ferry_rate_limits[reason]) > 0;
}

static bool ferry_must_stop(void)
{
	return fatal_signal_pending(current) ||
	       (current->flags & PF_KTHREAD && kthread_should_stop());
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
	while ((ns = ferry_pause_ns(limit)) > 0 && !ferry_must_stop() &&
	       !ferry_is_dead(mm)) {
		pause = ns_to_ktime(min(ns, FERRY_PAUSE_NS));
		set_current_state(TASK_KILLABLE | TASK_FREEZABLE);
		schedule_hrtimeout_range(&pause, NSEC_PER_MSEC,
					 HRTIMER_MODE_REL);
	}
	atomic64_add(ktime_get_ns() - start, &limit->slept_ns);
	if (ns <= 0)
		return 0;
	return ferry_must_stop() ? -EINTR : -ESRCH;
}

unsigned long __ferry_slice_next(struct ferry_slice *slice,
				 enum migrate_reason reason, unsigned long nr)
{
	struct ferry_rate_limit *limit = &ferry_rate_limits[reason];
	s64 ns = ferry_pause_ns(limit);

	if (!READ_ONCE(limit->max_bytes_per_s))
		return nr;
	if (!slice->nr)
		slice->nr = FERRY_FIRST_SLICE;
	else if (ns > FERRY_LONG_PAUSE_NS)
		slice->nr = max(slice->nr / 2, 1UL);
	else if (ns < FERRY_SHORT_PAUSE_NS)
		slice->nr = min(slice->nr * 2, FERRY_LARGEST_SLICE);
	return min(slice->nr, nr);
}
