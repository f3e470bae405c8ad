// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: The knobs and counters of dcbm
 *
 * In /sys/kernel/mm/migration/dcbm/, as described in
 * Documentation/ABI/testing/sysfs-kernel-mm-migration-dcbm. All may be written at any time: a batch
 * reads each once where it matters. Those that change what a batch costs measure it again.
 *
 * The counters only grow, but for the pages in quarantine. Once no batch is under way,
 *
 *	descriptors = completed + errors + timeouts
 *
 * holds exactly, and late <= timeouts.
 *
 * Lock order: dcbm_mutex.
 */

#include <linux/kobject.h>
#include <linux/kstrtox.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "dcbm.h"

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
	[DCBM_VERIFY_SAMPLED] = "sampled",
	[DCBM_VERIFY_NEVER] = "never",
};

static const char * const dcbm_offload_words[] = { "auto", "always" };

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

static ssize_t offload_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return ferry_show_words(buf, dcbm_offload_words, ARRAY_SIZE(dcbm_offload_words),
				READ_ONCE(dcbm_tuning.always));
}

static ssize_t offload_store(struct kobject *kobj, struct kobj_attribute *attr,
			     const char *buf, size_t count)
{
	int offload = sysfs_match_string(dcbm_offload_words, buf);

	if (offload < 0)
		return offload;
	WRITE_ONCE(dcbm_tuning.always, offload);
	dcbm_recalibrate();
	return count;
}

static struct kobj_attribute offload_attr = __ATTR_RW(offload);

static struct attribute *dcbm_attrs[] = {
	&channels_attr.attr,
	&devices_attr.attr,
	&timeout_ms_attr.attr,
	&verify_attr.attr,
	&offload_attr.attr,
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
DCBM_COUNTER_ATTR(late, DCBM_LATE);
DCBM_COUNTER_ATTR(mismatches, DCBM_MISMATCHES);
DCBM_COUNTER_ATTR(verified_bytes, DCBM_VERIFIED_BYTES);
DCBM_COUNTER_ATTR(verify_ns, DCBM_VERIFY_NS);
DCBM_COUNTER_ATTR(map_failures, DCBM_MAP_FAILURES);
DCBM_COUNTER_ATTR(prep_failures, DCBM_PREP_FAILURES);
DCBM_COUNTER_ATTR(overdue, DCBM_OVERDUE);
DCBM_COUNTER_ATTR(refused_slower, DCBM_REFUSED_SLOWER);
DCBM_COUNTER_ATTR(refused_busy, DCBM_REFUSED_BUSY);
DCBM_COUNTER_ATTR(refused_tagged, DCBM_REFUSED_TAGGED);
DCBM_COUNTER_ATTR(retired, DCBM_RETIRED);
DCBM_COUNTER_ATTR(revived, DCBM_REVIVED);
DCBM_COUNTER_ATTR(quarantined_pages, DCBM_QUARANTINED_PAGES);
DCBM_COUNTER_ATTR(abandoned_pages, DCBM_ABANDONED_PAGES);

static struct attribute *dcbm_counter_attrs[] = {
	&descriptors_attr.attr,
	&completed_attr.attr,
	&errors_attr.attr,
	&timeouts_attr.attr,
	&late_attr.attr,
	&mismatches_attr.attr,
	&verified_bytes_attr.attr,
	&verify_ns_attr.attr,
	&map_failures_attr.attr,
	&prep_failures_attr.attr,
	&overdue_attr.attr,
	&refused_slower_attr.attr,
	&refused_busy_attr.attr,
	&refused_tagged_attr.attr,
	&retired_attr.attr,
	&revived_attr.attr,
	&quarantined_pages_attr.attr,
	&abandoned_pages_attr.attr,
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
