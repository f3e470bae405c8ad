// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Counters
 *
 * /sys/kernel/mm/migration/stats/<migrator>/ has a file for each counter. They only grow
 * while the migrator stays registered. Each is exact; two read one after the other may
 * have a batch between them. They are updated a few times a batch, and once for each folio
 * that is not eligible, so plain atomics do.
 *
 * Every folio that reaches the copy phase is counted once: in folios when it was copied,
 * in fallbacks when the migrator did not copy it, in refused_kind or refused_pinned when
 * it was not eligible, and within a whole refused batch otherwise.
 *
 * Lock order: none are taken. The entry is freed by its kobject's release.
 */

#include <linux/kobject.h>
#include <linux/slab.h>
#include <linux/sysfs.h>

#include "internal.h"

struct ferry_stat_attr {
	struct attribute attr;
	enum ferry_stat stat;
};

#define FERRY_STAT_ATTR(_name, _stat)						\
	static struct ferry_stat_attr ferry_stat_##_name = {			\
		.attr = { .name = #_name, .mode = 0444 },			\
		.stat = _stat,							\
	}

FERRY_STAT_ATTR(batches, FERRY_BATCHES);
FERRY_STAT_ATTR(folios, FERRY_FOLIOS);
FERRY_STAT_ATTR(bytes, FERRY_BYTES);
FERRY_STAT_ATTR(copy_ns, FERRY_COPY_NS);
FERRY_STAT_ATTR(fallbacks, FERRY_FALLBACKS);
FERRY_STAT_ATTR(refused_kind, FERRY_REFUSED_KIND);
FERRY_STAT_ATTR(refused_pinned, FERRY_REFUSED_PINNED);
FERRY_STAT_ATTR(refused_small, FERRY_REFUSED_SMALL);
FERRY_STAT_ATTR(refused_busy, FERRY_REFUSED_BUSY);
FERRY_STAT_ATTR(refused_migrator, FERRY_REFUSED_MIGRATOR);

static struct attribute *ferry_stat_attrs[] = {
	&ferry_stat_batches.attr,
	&ferry_stat_folios.attr,
	&ferry_stat_bytes.attr,
	&ferry_stat_copy_ns.attr,
	&ferry_stat_fallbacks.attr,
	&ferry_stat_refused_kind.attr,
	&ferry_stat_refused_pinned.attr,
	&ferry_stat_refused_small.attr,
	&ferry_stat_refused_busy.attr,
	&ferry_stat_refused_migrator.attr,
	NULL,
};
ATTRIBUTE_GROUPS(ferry_stat);

static ssize_t ferry_stat_show(struct kobject *kobj, struct attribute *attr,
			       char *buf)
{
	struct ferry_entry *entry = container_of(kobj, struct ferry_entry, kobj);
	enum ferry_stat stat = container_of(attr, struct ferry_stat_attr, attr)->stat;

	return sysfs_emit(buf, "%lld\n", atomic64_read(&entry->stats[stat]));
}

static void ferry_entry_release(struct kobject *kobj)
{
	kfree(container_of(kobj, struct ferry_entry, kobj));
}

static const struct sysfs_ops ferry_stat_sysfs_ops = {
	.show = ferry_stat_show,
};

const struct kobj_type ferry_entry_ktype = {
	.release = ferry_entry_release,
	.sysfs_ops = &ferry_stat_sysfs_ops,
	.default_groups = ferry_stat_groups,
};
