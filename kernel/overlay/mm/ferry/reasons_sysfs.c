// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Reasons of migration
 *
 * Compaction, demotion, move_pages(2) and other reasons of migration differ in
 * how long a folio may stay locked, and in whether a DMA engine or more CPUs
 * are worth it. /sys/kernel/mm/migration/reasons/<reason>/ has the settings of
 * each, and stats/reasons/<reason>/ its counters. The directories are made at
 * boot and stay.
 */

#include <linux/err.h>
#include <linux/init.h>
#include <linux/kobject.h>
#include <linux/kstrtox.h>
#include <linux/math64.h>
#include <linux/migrate.h>
#include <linux/sizes.h>
#include <linux/sysfs.h>
#include <linux/time64.h>

#include "internal.h"

/**
 * struct ferry_reason - the directories of a reason of migration
 * @settings:	in reasons/
 * @stats:	in stats/reasons/
 */
struct ferry_reason {
	struct kobject settings;
	struct kobject stats;
};

static struct ferry_reason ferry_reasons[FERRY_NR_REASONS];

static unsigned int ferry_reason_of_settings(struct kobject *kobj)
{
	return container_of(kobj, struct ferry_reason, settings) -
	       ferry_reasons;
}

static ssize_t migrator_show(struct kobject *kobj, struct kobj_attribute *attr,
			     char *buf)
{
	return ferry_list(ferry_reason_of_settings(kobj), buf);
}

static ssize_t migrator_store(struct kobject *kobj, struct kobj_attribute *attr,
			      const char *buf, size_t count)
{
	return ferry_select(ferry_reason_of_settings(kobj), buf) ?: count;
}

static ssize_t batch_max_us_show(struct kobject *kobj,
				 struct kobj_attribute *attr, char *buf)
{
	unsigned int reason = ferry_reason_of_settings(kobj);

	return sysfs_emit(buf, "%lu\n", READ_ONCE(ferry_reason_max_us[reason]));
}

static ssize_t batch_max_us_store(struct kobject *kobj,
				  struct kobj_attribute *attr,
				  const char *buf, size_t count)
{
	unsigned long us;

	if (kstrtoul(buf, 10, &us) || us > USEC_PER_SEC)
		return -EINVAL;
	WRITE_ONCE(ferry_reason_max_us[ferry_reason_of_settings(kobj)], us);
	return count;
}

static ssize_t max_bytes_per_s_show(struct kobject *kobj,
				    struct kobj_attribute *attr, char *buf)
{
	unsigned int reason = ferry_reason_of_settings(kobj);

	return sysfs_emit(buf, "%lu\n", ferry_get_rate_limit(reason));
}

static ssize_t max_bytes_per_s_store(struct kobject *kobj,
				     struct kobj_attribute *attr,
				     const char *buf, size_t count)
{
	unsigned long value;

	if (kstrtoul(buf, 10, &value) || (value && value < SZ_1M))
		return -EINVAL;
	ferry_set_rate_limit(ferry_reason_of_settings(kobj), value);
	return count;
}

static struct kobj_attribute migrator_attr = __ATTR_RW(migrator);
static struct kobj_attribute batch_max_us_attr = __ATTR_RW(batch_max_us);
static struct kobj_attribute max_bytes_per_s_attr = __ATTR_RW(max_bytes_per_s);

static struct attribute *ferry_setting_attrs[] = {
	&migrator_attr.attr,
	&batch_max_us_attr.attr,
	&max_bytes_per_s_attr.attr,
	NULL,
};

static umode_t ferry_setting_visible(struct kobject *kobj,
				     struct attribute *attr, int n)
{
	unsigned int reason = ferry_reason_of_settings(kobj);

	if (attr == &max_bytes_per_s_attr.attr && !ferry_has_rate_limit(reason))
		return 0;
	return attr->mode;
}

static const struct attribute_group ferry_setting_group = {
	.attrs = ferry_setting_attrs,
	.is_visible = ferry_setting_visible,
};

static const struct attribute_group *ferry_setting_groups[] = {
	&ferry_setting_group,
	NULL,
};

static unsigned int ferry_reason_of_stats(struct kobject *kobj)
{
	return container_of(kobj, struct ferry_reason, stats) - ferry_reasons;
}

static ssize_t moved_pages_show(struct kobject *kobj,
				struct kobj_attribute *attr, char *buf)
{
	unsigned int reason = ferry_reason_of_stats(kobj);

	return sysfs_emit(buf, "%llu\n", ferry_pages_sum(reason).moved);
}

static ssize_t failed_pages_show(struct kobject *kobj,
				 struct kobj_attribute *attr, char *buf)
{
	unsigned int reason = ferry_reason_of_stats(kobj);

	return sysfs_emit(buf, "%llu\n", ferry_pages_sum(reason).failed);
}

static ssize_t throttled_us_show(struct kobject *kobj,
				 struct kobj_attribute *attr, char *buf)
{
	u64 ns = ferry_slept_ns(ferry_reason_of_stats(kobj));

	return sysfs_emit(buf, "%llu\n", div_u64(ns, NSEC_PER_USEC));
}

static struct kobj_attribute moved_pages_attr = __ATTR_RO(moved_pages);
static struct kobj_attribute failed_pages_attr = __ATTR_RO(failed_pages);
static struct kobj_attribute throttled_us_attr = __ATTR_RO(throttled_us);

static struct attribute *ferry_pages_attrs[] = {
	&moved_pages_attr.attr,
	&failed_pages_attr.attr,
	&throttled_us_attr.attr,
	NULL,
};

static umode_t ferry_pages_visible(struct kobject *kobj, struct attribute *attr,
				   int n)
{
	unsigned int reason = ferry_reason_of_stats(kobj);

	if (attr == &throttled_us_attr.attr && !ferry_has_rate_limit(reason))
		return 0;
	return attr->mode;
}

static const struct attribute_group ferry_pages_group = {
	.attrs = ferry_pages_attrs,
	.is_visible = ferry_pages_visible,
};

/* Batches in all buckets up to that of the file. */
static ssize_t ferry_locked_show(struct kobject *kobj,
				 struct kobj_attribute *attr, char *buf)
{
	struct ferry_locked *locked;
	unsigned int i;
	s64 sum = 0;

	locked = &ferry_locked[ferry_reason_of_stats(kobj)];
	for (i = 0; i <= to_ferry_knob(attr)->id; i++)
		sum += atomic64_read(&locked->batches[i]);
	return sysfs_emit(buf, "%lld\n", sum);
}

static ssize_t total_us_show(struct kobject *kobj, struct kobj_attribute *attr,
			     char *buf)
{
	u64 ns = atomic64_read(&ferry_locked[ferry_reason_of_stats(kobj)].ns);

	return sysfs_emit(buf, "%llu\n", div_u64(ns, NSEC_PER_USEC));
}

static struct kobj_attribute total_us_attr = __ATTR_RO(total_us);

#define FERRY_LOCKED_FILE(_name, _id) \
	FERRY_KNOB(_name, 0444, ferry_locked_show, NULL, .id = _id)

static struct attribute *ferry_locked_attrs[] = {
	FERRY_LOCKED_FILE(le_64us, 0),
	FERRY_LOCKED_FILE(le_128us, 1),
	FERRY_LOCKED_FILE(le_256us, 2),
	FERRY_LOCKED_FILE(le_512us, 3),
	FERRY_LOCKED_FILE(le_1024us, 4),
	FERRY_LOCKED_FILE(le_2048us, 5),
	FERRY_LOCKED_FILE(le_4096us, 6),
	FERRY_LOCKED_FILE(le_8192us, 7),
	FERRY_LOCKED_FILE(le_16384us, 8),
	FERRY_LOCKED_FILE(le_32768us, 9),
	FERRY_LOCKED_FILE(count, FERRY_LOCKED_BUCKETS - 1),
	&total_us_attr.attr,
	NULL,
};

static const struct attribute_group ferry_locked_group = {
	.name = "locked",
	.attrs = ferry_locked_attrs,
};

static const struct attribute_group *ferry_reason_stat_groups[] = {
	&ferry_pages_group,
	&ferry_locked_group,
	NULL,
};

/* The directories are in static memory. */
static void ferry_reason_release(struct kobject *kobj)
{
}

static const struct kobj_type ferry_setting_ktype = {
	.release = ferry_reason_release,
	.sysfs_ops = &kobj_sysfs_ops,
	.default_groups = ferry_setting_groups,
};

static const struct kobj_type ferry_reason_stat_ktype = {
	.release = ferry_reason_release,
	.sysfs_ops = &kobj_sysfs_ops,
	.default_groups = ferry_reason_stat_groups,
};

/* After ferry_init(), which makes the directories above these. */
static int __init ferry_reasons_init(void)
{
	struct kobject *settings = ferry_sysfs_dir("reasons", NULL);
	struct kobject *stats = ferry_stats_dir("reasons");
	unsigned int i;
	int err = 0;

	if (IS_ERR(settings) || IS_ERR(stats))
		return -ENOMEM;
	for (i = 0; i < FERRY_NR_REASONS && !err; i++) {
		struct ferry_reason *reason = &ferry_reasons[i];
		const char *name = migrate_reason_names[i];

		err = kobject_init_and_add(&reason->settings,
					   &ferry_setting_ktype, settings,
					   "%s", name) ?:
		      kobject_init_and_add(&reason->stats,
					   &ferry_reason_stat_ktype, stats,
					   "%s", name);
	}
	return err;
}
subsys_initcall_sync(ferry_reasons_init);
