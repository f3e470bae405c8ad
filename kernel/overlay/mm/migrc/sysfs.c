// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: The settings in /sys/kernel/mm/migration/migrc
 *
 * Documentation/ABI/testing/sysfs-kernel-mm-migration-migrc describes each
 * file.
 *
 * The hooks are static branches until migrc is first enabled, and stay enabled
 * from then on: a flush of an mm may be pending long after migrc is disabled,
 * and the next event flushes it as before. While migrc is disabled no flush is
 * deferred; disabling drains the quarantine.
 *
 * Locking: migrc_enabled_mutex serialises writes of the enabled file.
 * migrc_enabled_mutex -> migrc_drain_mutex.
 */

#include <linux/err.h>
#include <linux/ferry_sysfs.h>
#include <linux/init.h>
#include <linux/jump_label.h>
#include <linux/kobject.h>
#include <linux/kstrtox.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/sysfs.h>

#include "internal.h"

#define MIGRC_MAX_AGE_MS	60000

static DEFINE_MUTEX(migrc_enabled_mutex);

static ssize_t enabled_show(struct kobject *kobj,
			    struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%d\n", READ_ONCE(migrc_enabled));
}

static ssize_t enabled_store(struct kobject *kobj, struct kobj_attribute *attr,
			     const char *buf, size_t count)
{
	unsigned int on;

	if (kstrtouint(buf, 10, &on) || on > 1)
		return -EINVAL;
	mutex_lock(&migrc_enabled_mutex);
	if (on) {
		/* All hooks are active before the first flush is deferred. */
		static_branch_enable(&migrc_used);
		WRITE_ONCE(migrc_enabled, true);
	} else if (migrc_enabled) {
		WRITE_ONCE(migrc_enabled, false);
		/* Batches in progress may add more, until max_age_ms. */
		__migrc_drain(MIGRC_OFF);
	}
	mutex_unlock(&migrc_enabled_mutex);
	return count;
}

static ssize_t max_bytes_show(struct kobject *kobj,
			      struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%lu\n", migrc_bound() << PAGE_SHIFT);
}

static ssize_t max_bytes_store(struct kobject *kobj,
			       struct kobj_attribute *attr,
			       const char *buf, size_t count)
{
	unsigned long bytes;

	if (kstrtoul(buf, 10, &bytes) || bytes >> PAGE_SHIFT > totalram_pages())
		return -EINVAL;
	migrc_set_bound(bytes >> PAGE_SHIFT);
	return count;
}

static ssize_t quarantined_bytes_show(struct kobject *kobj,
				      struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%lu\n", migrc_quarantined() << PAGE_SHIFT);
}

static ssize_t peak_bytes_show(struct kobject *kobj,
			       struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%lu\n", migrc_quarantine_peak() << PAGE_SHIFT);
}

static ssize_t oldest_ms_show(struct kobject *kobj,
			      struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", migrc_quarantine_oldest_ms());
}

static ssize_t drain_store(struct kobject *kobj, struct kobj_attribute *attr,
			   const char *buf, size_t count)
{
	unsigned int now;

	if (kstrtouint(buf, 10, &now) || now != 1)
		return -EINVAL;
	__migrc_drain(MIGRC_DRAIN);
	return count;
}

static struct attribute *migrc_attrs[] = {
	FERRY_KNOB(enabled, 0644, enabled_show, enabled_store),
	FERRY_KNOB(max_bytes, 0644, max_bytes_show, max_bytes_store),
	FERRY_KNOB_NUMBER(max_age_ms, &migrc_max_age_ms, 1, MIGRC_MAX_AGE_MS,
			  migrc_apply_max_age),
	FERRY_KNOB(quarantined_bytes, 0444, quarantined_bytes_show, NULL),
	FERRY_KNOB(peak_bytes, 0444, peak_bytes_show, NULL),
	FERRY_KNOB(oldest_ms, 0444, oldest_ms_show, NULL),
	FERRY_KNOB(drain, 0200, NULL, drain_store),
	NULL,
};

static const struct attribute_group migrc_group = {
	.attrs = migrc_attrs,
};

static const struct attribute_group *migrc_groups[] = {
	&migrc_group,
	&migrc_counters_group,
	NULL,
};

static int __init migrc_sysfs_init(void)
{
	return PTR_ERR_OR_ZERO(ferry_sysfs_dir("migrc", migrc_groups));
}
late_initcall(migrc_sysfs_init);
