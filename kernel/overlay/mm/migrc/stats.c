// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Counters
 *
 * /sys/kernel/mm/migration/migrc/counters/ has a file for each counter.
 * A batch adds its counts once, at its end, so plain atomics suffice. The
 * counters of what was avoided are net: a flush that was done later is
 * subtracted, so they can fall. All others only grow.
 */

#include <linux/build_bug.h>
#include <linux/mm.h>
#include <linux/sysfs.h>

#include "internal.h"

static atomic64_t migrc_stats[MIGRC_NR_STATS];

/* The flushes are counted in the order of enum migrc_cause. */
static_assert(MIGRC_FLUSHED_WRITE_FAULT + MIGRC_OFF == MIGRC_FLUSHED_OFF);
static_assert(MIGRC_OFF + 1 == MIGRC_NR_CAUSES);

/**
 * migrc_count() - add to a counter
 * @stat:	the counter
 * @n:		how much
 *
 * Context: any.
 */
void migrc_count(enum migrc_stat stat, unsigned long n)
{
	atomic64_add(n, &migrc_stats[stat]);
}

/**
 * migrc_count_flush() - count a flush that had been deferred
 * @cause: its cause
 *
 * Context: any.
 */
void migrc_count_flush(enum migrc_cause cause)
{
	atomic64_inc(&migrc_stats[MIGRC_FLUSHED_WRITE_FAULT + cause]);
}

/**
 * migrc_count_paid() - subtract a flush from those that were avoided
 * @ipis:	CPUs that it interrupts
 * @broadcasts:	broadcasts that it sends
 *
 * Context: any.
 */
void migrc_count_paid(unsigned int ipis, unsigned long broadcasts)
{
	atomic64_dec(&migrc_stats[MIGRC_AVOIDED_FLUSHES]);
	atomic64_sub(ipis, &migrc_stats[MIGRC_AVOIDED_IPIS]);
	atomic64_sub(broadcasts, &migrc_stats[MIGRC_AVOIDED_BROADCASTS]);
}

#define MIGRC_FILE(_id, _name) FERRY_COUNTER(_name, &migrc_stats[_id]),
static struct attribute *migrc_counter_attrs[] = MIGRC_STATS(MIGRC_FILE, NULL);

const struct attribute_group migrc_counters_group = {
	.name = "counters",
	.attrs = migrc_counter_attrs,
};
