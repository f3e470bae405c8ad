// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Counters of migrators
 *
 * /sys/kernel/mm/migration/stats/<migrator>/<reason>/ has a file for each
 * counter, and stats/<migrator>/ has the sums over all reasons. A counter only
 * grows while the migrator stays registered. Each is exact, but a batch may end
 * between the reads of two of them. The copy phase updates them a few times a
 * batch, so plain atomics are cheap enough.
 *
 * The copy phase counts every folio that it looks at once: in folios when the
 * migrator copied it, in fallbacks when the migrator failed to, and in
 * skipped_unsupported or skipped_pinned when it was not eligible. A batch that
 * was skipped or rejected as a whole is counted as one batch instead.
 */

#include <linux/kobject.h>
#include <linux/slab.h>
#include <linux/sysfs.h>

#include "internal.h"

static ssize_t ferry_sum_show(struct kobject *kobj,
			      struct kobj_attribute *attr, char *buf)
{
	struct ferry_entry *entry;
	unsigned int reason;
	s64 sum = 0;

	entry = container_of(kobj, struct ferry_entry, kobj);
	for (reason = 0; reason < FERRY_NR_REASONS; reason++)
		sum += atomic64_read(entry->stats[reason].counts +
				     to_ferry_knob(attr)->id);
	return sysfs_emit(buf, "%lld\n", sum);
}

#define FERRY_SUM(_id, _name) \
	FERRY_KNOB(_name, 0444, ferry_sum_show, NULL, .id = _id),
static struct attribute *ferry_sum_attrs[] = FERRY_STATS(FERRY_SUM, NULL);
ATTRIBUTE_GROUPS(ferry_sum);

static void ferry_entry_release(struct kobject *kobj)
{
	kfree(container_of(kobj, struct ferry_entry, kobj));
}

const struct kobj_type ferry_entry_ktype = {
	.release = ferry_entry_release,
	.sysfs_ops = &kobj_sysfs_ops,
	.default_groups = ferry_sum_groups,
};

static ssize_t ferry_stat_show(struct kobject *kobj,
			       struct kobj_attribute *attr, char *buf)
{
	struct ferry_stats *stats;

	stats = container_of(kobj, struct ferry_stats, kobj);
	return sysfs_emit(buf, "%lld\n",
			  atomic64_read(stats->counts +
					to_ferry_knob(attr)->id));
}

#define FERRY_FILE(_id, _name) \
	FERRY_KNOB(_name, 0444, ferry_stat_show, NULL, .id = _id),
static struct attribute *ferry_stat_attrs[] = FERRY_STATS(FERRY_FILE, NULL);
ATTRIBUTE_GROUPS(ferry_stat);

/* Its memory is the entry's, whose directory it holds a reference to. */
static void ferry_stats_release(struct kobject *kobj)
{
}

const struct kobj_type ferry_stats_ktype = {
	.release = ferry_stats_release,
	.sysfs_ops = &kobj_sysfs_ops,
	.default_groups = ferry_stat_groups,
};
