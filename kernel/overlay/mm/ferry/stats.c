// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Counters
 *
 * /sys/kernel/mm/migration/stats/<migrator>/ has a file for each counter. A
 * counter only grows while the migrator stays registered. Each is exact, but a
 * batch may end between the reads of two of them. The copy phase updates them a
 * few times a batch, so plain atomics are cheap enough.
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

static ssize_t ferry_stat_show(struct kobject *kobj,
			       struct kobj_attribute *attr, char *buf)
{
	struct ferry_entry *entry;
	atomic64_t *stat;

	entry = container_of(kobj, struct ferry_entry, kobj);
	stat = &entry->stats[to_ferry_knob(attr)->id];
	return sysfs_emit(buf, "%lld\n", atomic64_read(stat));
}

#define FERRY_FILE(_id, _name) \
	FERRY_KNOB(_name, 0444, ferry_stat_show, NULL, .id = _id),
static struct attribute *ferry_stat_attrs[] = FERRY_STATS(FERRY_FILE, NULL);
ATTRIBUTE_GROUPS(ferry_stat);

static void ferry_entry_release(struct kobject *kobj)
{
	kfree(container_of(kobj, struct ferry_entry, kobj));
}

const struct kobj_type ferry_entry_ktype = {
	.release = ferry_entry_release,
	.sysfs_ops = &kobj_sysfs_ops,
	.default_groups = ferry_stat_groups,
};
