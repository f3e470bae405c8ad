// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: /sys/kernel/mm/migration/runs
 *
 * The switch. It may change at any time: between the two hooks in
 * migrate_pages_batch() a folio of a run is in the same state as any other, so
 * the code for single folios completes a batch that began as runs.
 *
 * Locking: ferry_runs_mutex keeps the static key equal to the value that was
 * written last. ferry_mutex of mm/ferry is taken inside.
 */

#include <linux/cleanup.h>
#include <linux/init.h>
#include <linux/jump_label.h>
#include <linux/mutex.h>

#include "internal.h"

DEFINE_STATIC_KEY_FALSE(ferry_runs_enabled);

static unsigned long ferry_runs_value;
static DEFINE_MUTEX(ferry_runs_mutex);	/* ferry_runs_enabled */

static void ferry_runs_changed(void)
{
	guard(mutex)(&ferry_runs_mutex);
	if (READ_ONCE(ferry_runs_value))
		static_branch_enable(&ferry_runs_enabled);
	else
		static_branch_disable(&ferry_runs_enabled);
	ferry_want_long_lists(READ_ONCE(ferry_runs_value));
}

static struct attribute *ferry_runs_attrs[] = {
	FERRY_KNOB_NUMBER(runs, &ferry_runs_value, 0, 1, ferry_runs_changed),
	NULL,
};

static const struct attribute_group ferry_runs_group = {
	.attrs = ferry_runs_attrs,
};

#define FERRY_RUN_FILE(_id, _name) \
	FERRY_COUNTER(_name, &ferry_run_stats[_id]),
static struct attribute *ferry_run_stat_attrs[] =
	FERRY_RUN_STATS(FERRY_RUN_FILE, NULL);

static const struct attribute_group ferry_run_stat_group = {
	.name = "runs",
	.attrs = ferry_run_stat_attrs,
};

static int __init ferry_runs_init(void)
{
	return ferry_sysfs_files(&ferry_runs_group, &ferry_run_stat_group);
}
late_initcall(ferry_runs_init);
