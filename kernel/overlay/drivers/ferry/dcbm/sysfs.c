// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Knobs and counters of dcbm
 *
 * The files of /sys/kernel/mm/migration/dcbm/, as described in
 * Documentation/ABI/testing/sysfs-kernel-mm-migration-dcbm. A write may happen
 * at any time: a batch reads each knob once where it matters.
 *
 * All counters except hung_pages only grow, and late_completions <= timeouts.
 *
 * Locking: the devices knob takes dcbm_mutex.
 */

#include <linux/cleanup.h>
#include <linux/ferry_sysfs.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "internal.h"

/* Less than the two minutes after which the kernel reports a hung task. */
#define DCBM_MAX_TIMEOUT_MS	20000

static const char * const dcbm_verify_words[] = {
	[DCBM_VERIFY_AUTO] = "auto",
	[DCBM_VERIFY_ALWAYS] = "always",
	NULL,
};

static ssize_t devices_show(struct kobject *kobj, struct kobj_attribute *attr,
			    char *buf)
{
	guard(mutex)(&dcbm_mutex);
	return sysfs_emit(buf, "%s\n", dcbm_devices);
}

static ssize_t devices_store(struct kobject *kobj, struct kobj_attribute *attr,
			     const char *buf, size_t count)
{
	char *names __free(kfree) = kstrndup(buf, count, GFP_KERNEL);

	if (!names)
		return -ENOMEM;
	return dcbm_set_devices(strim(names)) ?: count;
}

static struct attribute *dcbm_attrs[] = {
	FERRY_KNOB_NUMBER(channels, &dcbm_tuning.channels,
			  1, DCBM_MAX_CHANNELS, NULL),
	FERRY_KNOB(devices, 0644, devices_show, devices_store),
	FERRY_KNOB_NUMBER(timeout_ms, &dcbm_tuning.timeout_ms,
			  0, DCBM_MAX_TIMEOUT_MS, NULL),
	FERRY_KNOB_WORDS(verify, &dcbm_tuning.verify, dcbm_verify_words,
			 NULL),
	NULL,
};

static const struct attribute_group dcbm_group = {
	.attrs = dcbm_attrs,
};

#define DCBM_FILE(_id, _name) FERRY_COUNTER(_name, &dcbm_counters[_id]),
static struct attribute *dcbm_counter_attrs[] = DCBM_COUNTERS(DCBM_FILE, NULL);

static const struct attribute_group dcbm_counter_group = {
	.name = "counters",
	.attrs = dcbm_counter_attrs,
};

const struct attribute_group *dcbm_groups[] = {
	&dcbm_group,
	&dcbm_counter_group,
	NULL,
};
