// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Limits
 *
 * How small a batch is not worth a call, and how large one may become.
 *
 * All folios of a batch are locked, and unmapped, until the last is copied: whoever touches
 * one waits. Without an offload migrator mm/migrate.c bounds that by 512 base pages, or by
 * those of a PMD, which are more where pages are larger. With one selected the bound is,
 * whichever comes first,
 *
 *   - that many folios: never more locks than without it,
 *   - batch_max_bytes,
 *   - what the migrator copies in max_stall_us, from the rate of its recent batches;
 *
 * but, as before the first batch, no less than without it.
 *
 * A larger batch pays by being copied in parallel. When the last one was not, as on a machine
 * with no idle CPU or with all DMA channels taken, the bound is what it is without a migrator
 * again: there a large batch only makes its folios wait for CPU time together.
 *
 * The knobs are plain words, read without a lock: a batch that sees an old value is a batch
 * that began a moment earlier.
 *
 * Lock order: none are taken.
 */

#include <linux/list.h>
#include <linux/mm.h>
#include <linux/sizes.h>
#include <linux/sysfs.h>

#include "internal.h"

/* With 2 MiB folios, 16 of them; with 64 KiB, as many as FERRY_BATCH_FOLIOS allows. */
#define FERRY_DEFAULT_BYTES	SZ_32M
#define FERRY_MAX_BYTES		SZ_1G
/* A page fault on a migrating folio waits about as long as for one read from a disk. */
#define FERRY_DEFAULT_STALL_US	4000
#define FERRY_MAX_STALL_US	1000000

static unsigned long ferry_min_bytes = SZ_64K;
static unsigned long ferry_batch_max_bytes = FERRY_DEFAULT_BYTES;
static unsigned long ferry_max_stall_us = FERRY_DEFAULT_STALL_US;

/* Bytes a batch may have now, see ferry_limit_update(). */
static unsigned long ferry_limit_bytes;

/**
 * ferry_batch_small() - is a batch too small to be worth a call?
 * @batch: the batch, filled
 *
 * Context: any.
 * Return: true if the move phase had better copy it.
 */
bool ferry_batch_small(const struct ferry_batch *batch)
{
	return batch->bytes < READ_ONCE(ferry_min_bytes);
}

/**
 * ferry_limit() - bytes a batch may have
 * @rate:	bytes per microsecond, 0 if unknown
 * @stall_us:	microseconds a batch may take to copy
 * @max_bytes:	most bytes whatever the rate
 *
 * Return: the limit in bytes, no less than a batch has without a migrator.
 */
unsigned long ferry_limit(unsigned long rate, unsigned long stall_us,
			  unsigned long max_bytes)
{
	unsigned long bytes;

	if (check_mul_overflow(rate, stall_us, &bytes))
		bytes = max_bytes;
	return max(min(bytes, max_bytes), FERRY_STOCK_BYTES);
}

/**
 * ferry_limit_update() - let the limit follow the migrator's rate
 * @entry: the selected migrator, NULL when off
 *
 * Context: any. Racing updates leave the limit of one of them.
 */
void ferry_limit_update(const struct ferry_entry *entry)
{
	unsigned long rate = entry ? READ_ONCE(entry->rate) : 0;

	WRITE_ONCE(ferry_limit_bytes,
		   ferry_limit(rate, READ_ONCE(ferry_max_stall_us),
			       READ_ONCE(ferry_batch_max_bytes)));
}

/**
 * ferry_rate_update() - learn from a batch how fast the migrator is
 * @entry:	the migrator
 * @bytes:	bytes it copied, not by the calling CPU alone
 * @ns:		nanoseconds it took
 *
 * Context: any. A lost update costs one sample of a running mean over about eight.
 */
void ferry_rate_update(struct ferry_entry *entry, size_t bytes, u64 ns)
{
	unsigned long old = READ_ONCE(entry->rate);
	unsigned long now = div64_u64((u64)bytes * NSEC_PER_USEC, ns ?: 1);

	WRITE_ONCE(entry->rate, old ? (7 * old + now) / 8 : now);
	ferry_limit_update(entry);
}

/**
 * ferry_rate_forget() - learn that a batch was left to one CPU
 * @entry:	the migrator that copied it alone, or refused it
 * @batch:	the batch
 *
 * A batch of fewer than 512 base pages says nothing: it may have been too small for more than
 * one CPU, whoever is idle.
 *
 * Context: any.
 */
void ferry_rate_forget(struct ferry_entry *entry, const struct ferry_batch *batch)
{
	if (batch->bytes < FERRY_BATCH_FOLIOS * PAGE_SIZE)
		return;
	WRITE_ONCE(entry->rate, 0);
	ferry_limit_update(entry);
}

bool __ferry_batch_full(unsigned int nr_folios, unsigned long nr_pages)
{
	return nr_folios >= FERRY_LOCKED_FOLIOS ||
	       nr_pages << PAGE_SHIFT >= max(READ_ONCE(ferry_limit_bytes), FERRY_STOCK_BYTES);
}

void __ferry_cut_batch(struct list_head *folios, struct list_head *batch)
{
	unsigned long nr = 0;

	do {
		list_move_tail(folios->next, batch);
	} while (!list_empty(folios) && ++nr < FERRY_LOCKED_FOLIOS);
}

static ssize_t ferry_store_limit(const char *buf, size_t count,
				 unsigned long *limit, unsigned long min,
				 unsigned long max)
{
	unsigned long value;

	if (kstrtoul(buf, 10, &value) || value < min || value > max)
		return -EINVAL;
	WRITE_ONCE(*limit, value);
	ferry_limit_refresh();
	return count;
}

#define FERRY_LIMIT_ATTR(_name, _min, _max)					\
static ssize_t _name##_show(struct kobject *kobj,				\
			    struct kobj_attribute *attr, char *buf)		\
{										\
	return sysfs_emit(buf, "%lu\n", READ_ONCE(ferry_##_name));		\
}										\
										\
static ssize_t _name##_store(struct kobject *kobj,				\
			     struct kobj_attribute *attr,			\
			     const char *buf, size_t count)			\
{										\
	return ferry_store_limit(buf, count, &ferry_##_name, _min, _max);	\
}										\
static struct kobj_attribute _name##_attr = __ATTR_RW(_name)

FERRY_LIMIT_ATTR(min_bytes, 0, FERRY_MAX_BYTES);
FERRY_LIMIT_ATTR(batch_max_bytes, 512 * PAGE_SIZE, FERRY_MAX_BYTES);
FERRY_LIMIT_ATTR(max_stall_us, 1, FERRY_MAX_STALL_US);

static struct attribute *ferry_policy_attrs[] = {
	&min_bytes_attr.attr,
	&batch_max_bytes_attr.attr,
	&max_stall_us_attr.attr,
	NULL,
};

const struct attribute_group ferry_policy_group = {
	.attrs = ferry_policy_attrs,
};
