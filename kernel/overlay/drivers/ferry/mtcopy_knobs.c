// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: The knobs of mtcopy
 *
 * threads, spread and stores in /sys/kernel/mm/migration/mtcopy/, as described in
 * Documentation/ABI/testing/sysfs-kernel-mm-migration. All may be written at any time: a
 * batch reads each once.
 *
 * Lock order: mtcopy_spread_mutex -> mtcopy_plans_mutex.
 */

#include <linux/cleanup.h>
#include <linux/kobject.h>
#include <linux/kstrtox.h>
#include <linux/mutex.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "mtcopy.h"

/*
 * Two threads gain wherever a second CPU is idle; how many more pay depends on the machine
 * (the batch copy series saw gains up to 8), so the operator decides.
 */
struct mtcopy_tuning mtcopy_tuning = {
	.threads = 4,
	.spread = FERRY_SPREAD_LLC,
	.stores = MTCOPY_AUTO,
};

static const char * const mtcopy_spread_words[] = {
	[FERRY_SPREAD_LLC] = "llc",
	[FERRY_SPREAD_NODE] = "node",
	[FERRY_SPREAD_NONE] = "none",
};

static const char * const mtcopy_stores_words[] = {
	[MTCOPY_CACHED] = "cached",
	[MTCOPY_STREAMING] = "streaming",
	[MTCOPY_AUTO] = "auto",
};

static ssize_t threads_show(struct kobject *kobj, struct kobj_attribute *attr,
			    char *buf)
{
	return sysfs_emit(buf, "%u\n", READ_ONCE(mtcopy_tuning.threads));
}

static ssize_t threads_store(struct kobject *kobj, struct kobj_attribute *attr,
			     const char *buf, size_t count)
{
	unsigned int threads;

	if (kstrtouint(buf, 10, &threads) ||
	    threads < 1 || threads > MTCOPY_MAX_THREADS)
		return -EINVAL;
	WRITE_ONCE(mtcopy_tuning.threads, threads);
	return count;
}

static struct kobj_attribute threads_attr = __ATTR_RW(threads);

static ssize_t spread_show(struct kobject *kobj, struct kobj_attribute *attr,
			   char *buf)
{
	return ferry_show_words(buf, mtcopy_spread_words,
				ARRAY_SIZE(mtcopy_spread_words),
				READ_ONCE(mtcopy_tuning.spread));
}

static ssize_t spread_store(struct kobject *kobj, struct kobj_attribute *attr,
			    const char *buf, size_t count)
{
	static DEFINE_MUTEX(mtcopy_spread_mutex);
	int err, old, spread = sysfs_match_string(mtcopy_spread_words, buf);

	if (spread < 0)
		return spread;
	guard(mutex)(&mtcopy_spread_mutex);
	old = mtcopy_tuning.spread;
	WRITE_ONCE(mtcopy_tuning.spread, spread);
	err = mtcopy_helpers_refresh();
	if (err)
		WRITE_ONCE(mtcopy_tuning.spread, old);
	return err ?: count;
}

static struct kobj_attribute spread_attr = __ATTR_RW(spread);

static ssize_t stores_show(struct kobject *kobj, struct kobj_attribute *attr,
			   char *buf)
{
	return ferry_show_words(buf, mtcopy_stores_words,
				ARRAY_SIZE(mtcopy_stores_words),
				READ_ONCE(mtcopy_tuning.stores));
}

static ssize_t stores_store(struct kobject *kobj, struct kobj_attribute *attr,
			    const char *buf, size_t count)
{
	int stores = sysfs_match_string(mtcopy_stores_words, buf);

	if (stores < 0)
		return stores;
	WRITE_ONCE(mtcopy_tuning.stores, stores);
	return count;
}

static struct kobj_attribute stores_attr = __ATTR_RW(stores);

static struct attribute *mtcopy_attrs[] = {
	&threads_attr.attr,
	&spread_attr.attr,
	&stores_attr.attr,
	NULL,
};

static const struct attribute_group mtcopy_group = {
	.attrs = mtcopy_attrs,
};

const struct attribute_group *mtcopy_groups[] = {
	&mtcopy_group,
	NULL,
};
