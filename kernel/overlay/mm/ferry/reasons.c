// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Reasons of migration
 *
 * Compaction, demotion, move_pages(2) and other reasons of migration differ in
 * how long a folio may stay locked, and in whether a DMA engine or more CPUs
 * are worth it. /sys/kernel/mm/migration/reasons/<reason>/ has the settings of
 * each, and stats/reasons/<reason>/ what it moved: with a migrator or without.
 * The sum of moved_pages over all reasons is pgmigrate_success of /proc/vmstat.
 *
 * The pages are counted once for each call of migrate_pages(), on its CPU.
 *
 * The histogram of locked times has a batch in one bucket: the time from before
 * the lock of its first folio until after the unlock of the last. Only batches
 * that were gathered for a migrator have one.
 *
 * The directories are made at boot and stay.
 */

#include <linux/init.h>
#include <linux/kobject.h>
#include <linux/kstrtox.h>
#include <linux/math64.h>
#include <linux/migrate.h>
#include <linux/percpu.h>
#include <linux/sizes.h>
#include <linux/sysfs.h>
#include <linux/time64.h>

#include "internal.h"

/* Bounds of 64 us, and four times as much each; the last bucket has none. */
#define FERRY_LOCKED_BUCKETS	7
#define FERRY_LOCKED_US(i)	(64UL << (2 * (i)))

/**
 * struct ferry_reason - a reason of migration
 * @settings:	its directory in reasons/
 * @stats:	its directory in stats/reasons/
 * @batch_max_us: limit of its batches, 0 for that of all
 * @locked:	batches by the time that their folios were locked
 * @locked_ns:	the sum of these times
 */
struct ferry_reason {
	struct kobject settings;
	struct kobject stats;
	unsigned long batch_max_us;
	atomic64_t locked[FERRY_LOCKED_BUCKETS];
	atomic64_t locked_ns;
};

static struct ferry_reason ferry_reasons[FERRY_NR_REASONS];

struct ferry_pages {
	u64 moved;
	u64 failed;
};

static DEFINE_PER_CPU(struct ferry_pages, ferry_pages[FERRY_NR_REASONS]);

/**
 * ferry_max_us() - the time limit of a batch
 * @reason: its reason
 *
 * Context: any.
 * Return: microseconds.
 */
unsigned long ferry_max_us(enum migrate_reason reason)
{
	return READ_ONCE(ferry_reasons[reason].batch_max_us) ?:
	       READ_ONCE(ferry_batch_max_us);
}

/**
 * ferry_count_pages() - count what a call of migrate_pages() did
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
 * ferry_count_locked() - count a batch by the time its folios were locked
 * @reason:	its reason
 * @ns:		from the lock of the first folio to the unlock of the last
 *
 * Context: any.
 */
void ferry_count_locked(enum migrate_reason reason, u64 ns)
{
	struct ferry_reason *this = &ferry_reasons[reason];
	unsigned int i = 0;

	while (i < FERRY_LOCKED_BUCKETS - 1 &&
	       ns > FERRY_LOCKED_US(i) * NSEC_PER_USEC)
		i++;
	atomic64_inc(&this->locked[i]);
	atomic64_add(ns, &this->locked_ns);
}

static struct ferry_reason *ferry_reason_of_settings(struct kobject *kobj)
{
	return container_of(kobj, struct ferry_reason, settings);
}

static ssize_t migrator_show(struct kobject *kobj, struct kobj_attribute *attr,
			     char *buf)
{
	return ferry_list(ferry_reason_of_settings(kobj) - ferry_reasons, buf);
}

static ssize_t migrator_store(struct kobject *kobj, struct kobj_attribute *attr,
			      const char *buf, size_t count)
{
	struct ferry_reason *reason = ferry_reason_of_settings(kobj);

	return ferry_select(reason - ferry_reasons, buf) ?: count;
}

static ssize_t batch_max_us_show(struct kobject *kobj,
				 struct kobj_attribute *attr, char *buf)
{
	struct ferry_reason *reason = ferry_reason_of_settings(kobj);

	return sysfs_emit(buf, "%lu\n", READ_ONCE(reason->batch_max_us));
}

static ssize_t batch_max_us_store(struct kobject *kobj,
				  struct kobj_attribute *attr,
				  const char *buf, size_t count)
{
	unsigned long value;

	if (kstrtoul(buf, 10, &value) || value > USEC_PER_SEC)
		return -EINVAL;
	WRITE_ONCE(ferry_reason_of_settings(kobj)->batch_max_us, value);
	return count;
}

static ssize_t max_bytes_per_s_show(struct kobject *kobj,
				    struct kobj_attribute *attr, char *buf)
{
	unsigned int reason = ferry_reason_of_settings(kobj) - ferry_reasons;

	return sysfs_emit(buf, "%lu\n", ferry_get_rate_limit(reason));
}

static ssize_t max_bytes_per_s_store(struct kobject *kobj,
				     struct kobj_attribute *attr,
				     const char *buf, size_t count)
{
	unsigned int reason = ferry_reason_of_settings(kobj) - ferry_reasons;
	unsigned long value;

	if (kstrtoul(buf, 10, &value) || (value && value < SZ_1M))
		return -EINVAL;
	ferry_set_rate_limit(reason, value);
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
	unsigned int reason = ferry_reason_of_settings(kobj) - ferry_reasons;

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

static struct ferry_reason *ferry_reason_of_stats(struct kobject *kobj)
{
	return container_of(kobj, struct ferry_reason, stats);
}

static struct ferry_pages ferry_pages_sum(unsigned int reason)
{
	struct ferry_pages sum = {};
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		sum.moved += per_cpu(ferry_pages[reason].moved, cpu);
		sum.failed += per_cpu(ferry_pages[reason].failed, cpu);
	}
	return sum;
}

static ssize_t moved_pages_show(struct kobject *kobj,
				struct kobj_attribute *attr, char *buf)
{
	unsigned int reason = ferry_reason_of_stats(kobj) - ferry_reasons;

	return sysfs_emit(buf, "%llu\n", ferry_pages_sum(reason).moved);
}

static ssize_t failed_pages_show(struct kobject *kobj,
				 struct kobj_attribute *attr, char *buf)
{
	unsigned int reason = ferry_reason_of_stats(kobj) - ferry_reasons;

	return sysfs_emit(buf, "%llu\n", ferry_pages_sum(reason).failed);
}

static ssize_t throttled_us_show(struct kobject *kobj,
				 struct kobj_attribute *attr, char *buf)
{
	u64 ns = ferry_slept_ns(ferry_reason_of_stats(kobj) - ferry_reasons);

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
	unsigned int reason = ferry_reason_of_stats(kobj) - ferry_reasons;

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
	struct ferry_reason *reason = ferry_reason_of_stats(kobj);
	unsigned int i;
	s64 sum = 0;

	for (i = 0; i <= to_ferry_knob(attr)->id; i++)
		sum += atomic64_read(&reason->locked[i]);
	return sysfs_emit(buf, "%lld\n", sum);
}

static ssize_t total_us_show(struct kobject *kobj, struct kobj_attribute *attr,
			     char *buf)
{
	u64 ns = atomic64_read(&ferry_reason_of_stats(kobj)->locked_ns);

	return sysfs_emit(buf, "%llu\n", div_u64(ns, NSEC_PER_USEC));
}

static struct kobj_attribute total_us_attr = __ATTR_RO(total_us);

#define FERRY_LOCKED_FILE(_name, _id) \
	FERRY_KNOB(_name, 0444, ferry_locked_show, NULL, .id = _id)

static struct attribute *ferry_locked_attrs[] = {
	FERRY_LOCKED_FILE(le_64us, 0),
	FERRY_LOCKED_FILE(le_256us, 1),
	FERRY_LOCKED_FILE(le_1024us, 2),
	FERRY_LOCKED_FILE(le_4096us, 3),
	FERRY_LOCKED_FILE(le_16384us, 4),
	FERRY_LOCKED_FILE(le_65536us, 5),
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

/**
 * ferry_reasons_init() - make the directories of all reasons
 * @root:	directory for reasons/
 * @stats:	directory for stats/reasons/
 *
 * Context: boot.
 * Return: 0 or a negative errno.
 */
int __init ferry_reasons_init(struct kobject *root, struct kobject *stats)
{
	unsigned int i;
	int err = 0;

	root = kobject_create_and_add("reasons", root);
	stats = kobject_create_and_add("reasons", stats);
	if (!root || !stats)
		return -ENOMEM;
	for (i = 0; i < FERRY_NR_REASONS && !err; i++) {
		struct ferry_reason *reason = &ferry_reasons[i];
		const char *name = migrate_reason_names[i];

		err = kobject_init_and_add(&reason->settings,
					   &ferry_setting_ktype, root, "%s",
					   name) ?:
		      kobject_init_and_add(&reason->stats,
					   &ferry_reason_stat_ktype, stats,
					   "%s", name);
	}
	return err;
}
