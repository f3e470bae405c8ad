// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: The knobs and counters of dcbm
 *
 * In /sys/kernel/mm/migration/dcbm/, as described in
 * Documentation/ABI/testing/sysfs-kernel-mm-migration-dcbm. All may be written at any time: a batch
 * reads each once where it matters. Those that change what a batch costs measure it again.
 *
 * All counters except hung_pages only grow. Once no batch is under way,
 *
 *	descriptors = completed + errors + timeouts
 *
 * holds exactly, and late_completions <= timeouts.
 *
 * Lock order: dcbm_mutex.
 */

#include <linux/kobject.h>
#include <linux/kstrtox.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "internal.h"

/* The most that a migration may have to wait for a channel that died. */
#define DCBM_MAX_TIMEOUT_MS	60000

struct dcbm_tuning dcbm_tuning = {
	/* The batch copy series saw diminishing returns beyond 8 to 12 channels. */
	.channels = 16,
	/* Far more than a batch takes: a channel given up too early is out of service, too. */
	.timeout_ms = 1000,
	.verify = DCBM_VERIFY_AUTO,
};

atomic64_t dcbm_counters[DCBM_NR_COUNTERS];

static const char * const dcbm_verify_words[] = {
	[DCBM_VERIFY_AUTO] = "auto",
	[DCBM_VERIFY_ALWAYS] = "always",
};

static ssize_t dcbm_store_number(const char *buf, size_t count, unsigned int *where,
				 unsigned int max)
{
	unsigned int value;

	if (kstrtouint(buf, 10, &value) || value < 1 || value > max)
		return -EINVAL;
	WRITE_ONCE(*where, value);
	return count;
}

static ssize_t channels_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", READ_ONCE(dcbm_tuning.channels));
}

static ssize_t channels_store(struct kobject *kobj, struct kobj_attribute *attr,
			      const char *buf, size_t count)
{
	ssize_t ret = dcbm_store_number(buf, count, &dcbm_tuning.channels, DCBM_MAX_CHANNELS);

	if (ret > 0)
		dcbm_recalibrate();
	return ret;
}

static struct kobj_attribute channels_attr = __ATTR_RW(channels);

static ssize_t devices_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return dcbm_show_devices(buf);
}

static ssize_t devices_store(struct kobject *kobj, struct kobj_attribute *attr,
			     const char *buf, size_t count)
{
	char *names __free(kfree) = kstrndup(buf, count, GFP_KERNEL);

	if (!names)
		return -ENOMEM;
	return dcbm_set_devices(strim(names)) ?: count;
}

static struct kobj_attribute devices_attr = __ATTR_RW(devices);

static ssize_t timeout_ms_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", READ_ONCE(dcbm_tuning.timeout_ms));
}

static ssize_t timeout_ms_store(struct kobject *kobj, struct kobj_attribute *attr,
				const char *buf, size_t count)
{
	return dcbm_store_number(buf, count, &dcbm_tuning.timeout_ms, DCBM_MAX_TIMEOUT_MS);
}

static struct kobj_attribute timeout_ms_attr = __ATTR_RW(timeout_ms);

static ssize_t verify_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return ferry_show_words(buf, dcbm_verify_words, ARRAY_SIZE(dcbm_verify_words),
				READ_ONCE(dcbm_tuning.verify));
}

static ssize_t verify_store(struct kobject *kobj, struct kobj_attribute *attr,
			    const char *buf, size_t count)
{
	int verify = sysfs_match_string(dcbm_verify_words, buf);

	if (verify < 0)
		return verify;
	WRITE_ONCE(dcbm_tuning.verify, verify);
	dcbm_recalibrate();
	return count;
}

static struct kobj_attribute verify_attr = __ATTR_RW(verify);

static struct attribute *dcbm_attrs[] = {
	&channels_attr.attr,
	&devices_attr.attr,
	&timeout_ms_attr.attr,
	&verify_attr.attr,
	NULL,
};

static const struct attribute_group dcbm_group = {
	.attrs = dcbm_attrs,
};

#define DCBM_COUNTER_ATTR(_name, _counter)						\
static ssize_t _name##_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)	\
{											\
	return sysfs_emit(buf, "%lld\n", atomic64_read(&dcbm_counters[_counter]));	\
}											\
static struct kobj_attribute _name##_attr = __ATTR_RO(_name)

DCBM_COUNTER_ATTR(descriptors, DCBM_DESCRIPTORS);
DCBM_COUNTER_ATTR(completed, DCBM_COMPLETED);
DCBM_COUNTER_ATTR(errors, DCBM_ERRORS);
DCBM_COUNTER_ATTR(timeouts, DCBM_TIMEOUTS);
DCBM_COUNTER_ATTR(late_completions, DCBM_LATE_COMPLETIONS);
DCBM_COUNTER_ATTR(verify_failures, DCBM_VERIFY_FAILURES);
DCBM_COUNTER_ATTR(verified_bytes, DCBM_VERIFIED_BYTES);
DCBM_COUNTER_ATTR(verify_ns, DCBM_VERIFY_NS);
DCBM_COUNTER_ATTR(map_failures, DCBM_MAP_FAILURES);
DCBM_COUNTER_ATTR(prep_failures, DCBM_PREP_FAILURES);
DCBM_COUNTER_ATTR(deadline_exceeded, DCBM_DEADLINE_EXCEEDED);
DCBM_COUNTER_ATTR(rejected_slower, DCBM_REJECTED_SLOWER);
DCBM_COUNTER_ATTR(rejected_busy, DCBM_REJECTED_BUSY);
DCBM_COUNTER_ATTR(rejected_tagged, DCBM_REJECTED_TAGGED);
DCBM_COUNTER_ATTR(channels_hung, DCBM_CHANNELS_HUNG);
DCBM_COUNTER_ATTR(channels_recovered, DCBM_CHANNELS_RECOVERED);
DCBM_COUNTER_ATTR(hung_pages, DCBM_HUNG_PAGES);
DCBM_COUNTER_ATTR(leaked_pages, DCBM_LEAKED_PAGES);

static struct attribute *dcbm_counter_attrs[] = {
	&descriptors_attr.attr,
	&completed_attr.attr,
	&errors_attr.attr,
	&timeouts_attr.attr,
	&late_completions_attr.attr,
	&verify_failures_attr.attr,
	&verified_bytes_attr.attr,
	&verify_ns_attr.attr,
	&map_failures_attr.attr,
	&prep_failures_attr.attr,
	&deadline_exceeded_attr.attr,
	&rejected_slower_attr.attr,
	&rejected_busy_attr.attr,
	&rejected_tagged_attr.attr,
	&channels_hung_attr.attr,
	&channels_recovered_attr.attr,
	&hung_pages_attr.attr,
	&leaked_pages_attr.attr,
	NULL,
};

static const struct attribute_group dcbm_counter_group = {
	.name = "counters",
	.attrs = dcbm_counter_attrs,
};

const struct attribute_group *dcbm_groups[] = {
	&dcbm_group,
	&dcbm_counter_group,
	NULL,
};
