// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Counters
 *
 * /sys/kernel/mm/migration/migrc/counters/ has a file for each. They only grow. A batch
 * counts itself once, at its end, so plain atomics do.
 *
 * Lock order: none are taken.
 */

#include <linux/mm.h>
#include <linux/sysfs.h>

#include "internal.h"

static atomic_long_t migrc_stats[MIGRC_NR_STATS];
static atomic_long_t migrc_flushes[MIGRC_NR_CAUSES];

/**
 * migrc_count() - count what happened
 * @stat:	what
 * @n:		how often
 *
 * Context: any.
 */
void migrc_count(enum migrc_stat stat, unsigned long n)
{
	atomic_long_add(n, &migrc_stats[stat]);
}

/**
 * migrc_count_flush() - count a flush that was done
 * @cause: why
 *
 * Context: any.
 */
void migrc_count_flush(enum migrc_cause cause)
{
	atomic_long_inc(&migrc_flushes[cause]);
}

struct migrc_counter {
	struct kobj_attribute attr;
	atomic_long_t *value;
};

static ssize_t migrc_counter_show(struct kobject *kobj, struct kobj_attribute *attr,
				  char *buf)
{
	struct migrc_counter *counter = container_of(attr, struct migrc_counter, attr);

	return sysfs_emit(buf, "%ld\n", atomic_long_read(counter->value));
}

#define MIGRC_COUNTER(_name, _value)						\
	static struct migrc_counter migrc_counter_##_name = {			\
		.attr = __ATTR(_name, 0444, migrc_counter_show, NULL),		\
		.value = _value,						\
	}

MIGRC_COUNTER(folios, &migrc_stats[MIGRC_FOLIOS]);
MIGRC_COUNTER(ptes, &migrc_stats[MIGRC_PTES]);
MIGRC_COUNTER(avoided_flushes, &migrc_stats[MIGRC_AVOIDED_FLUSHES]);
MIGRC_COUNTER(avoided_ipis, &migrc_stats[MIGRC_AVOIDED_IPIS]);
MIGRC_COUNTER(avoided_broadcasts, &migrc_stats[MIGRC_AVOIDED_BROADCASTS]);
MIGRC_COUNTER(refused_writable, &migrc_stats[MIGRC_REFUSED_WRITABLE]);
MIGRC_COUNTER(refused_file, &migrc_stats[MIGRC_REFUSED_FILE]);
MIGRC_COUNTER(refused_full, &migrc_stats[MIGRC_REFUSED_FULL]);
MIGRC_COUNTER(refused_paused, &migrc_stats[MIGRC_REFUSED_PAUSED]);
MIGRC_COUNTER(flushed_write_fault, &migrc_flushes[MIGRC_WRITE_FAULT]);
MIGRC_COUNTER(flushed_swap_fault, &migrc_flushes[MIGRC_SWAP_FAULT]);
MIGRC_COUNTER(flushed_unmap, &migrc_flushes[MIGRC_UNMAP]);
MIGRC_COUNTER(flushed_gup, &migrc_flushes[MIGRC_GUP]);
MIGRC_COUNTER(flushed_mixed, &migrc_flushes[MIGRC_MIXED]);
MIGRC_COUNTER(flushed_file, &migrc_flushes[MIGRC_FILE]);
MIGRC_COUNTER(flushed_full, &migrc_flushes[MIGRC_FULL]);
MIGRC_COUNTER(flushed_age, &migrc_flushes[MIGRC_AGE]);
MIGRC_COUNTER(flushed_pressure, &migrc_flushes[MIGRC_PRESSURE]);
MIGRC_COUNTER(flushed_compaction, &migrc_flushes[MIGRC_COMPACTION]);
MIGRC_COUNTER(flushed_drain, &migrc_flushes[MIGRC_DRAIN]);
MIGRC_COUNTER(flushed_failure, &migrc_flushes[MIGRC_FAILURE]);
MIGRC_COUNTER(flushed_off, &migrc_flushes[MIGRC_OFF]);

static struct attribute *migrc_counter_attrs[] = {
	&migrc_counter_folios.attr.attr,
	&migrc_counter_ptes.attr.attr,
	&migrc_counter_avoided_flushes.attr.attr,
	&migrc_counter_avoided_ipis.attr.attr,
	&migrc_counter_avoided_broadcasts.attr.attr,
	&migrc_counter_refused_writable.attr.attr,
	&migrc_counter_refused_file.attr.attr,
	&migrc_counter_refused_full.attr.attr,
	&migrc_counter_refused_paused.attr.attr,
	&migrc_counter_flushed_write_fault.attr.attr,
	&migrc_counter_flushed_swap_fault.attr.attr,
	&migrc_counter_flushed_unmap.attr.attr,
	&migrc_counter_flushed_gup.attr.attr,
	&migrc_counter_flushed_mixed.attr.attr,
	&migrc_counter_flushed_file.attr.attr,
	&migrc_counter_flushed_full.attr.attr,
	&migrc_counter_flushed_age.attr.attr,
	&migrc_counter_flushed_pressure.attr.attr,
	&migrc_counter_flushed_compaction.attr.attr,
	&migrc_counter_flushed_drain.attr.attr,
	&migrc_counter_flushed_failure.attr.attr,
	&migrc_counter_flushed_off.attr.attr,
	NULL,
};

const struct attribute_group migrc_counters_group = {
	.name = "counters",
	.attrs = migrc_counter_attrs,
};
