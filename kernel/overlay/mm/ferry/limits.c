// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Limits of a batch
 *
 * batch_min_bytes is the size below which the call of a migrator costs more
 * than it gains. The rest of this file bounds a batch from above.
 *
 * All folios of a batch are locked and unmapped until the last one is moved, so
 * a task that touches one of them waits. Without an offload migrator
 * mm/migrate.c bounds a batch by 512 base pages, or by those of a PMD, which
 * are more where base pages are larger than 4 KiB. With an offload migrator
 * selected, a batch ends at the first of these:
 *
 *   - as many folios as that, so a batch never locks more than without it,
 *   - batch_max_bytes,
 *   - the bytes that the migrator copies in batch_max_us, according to the rate
 *     of recent batches of the same reason between the same nodes,
 *   - half of batch_max_us after its first folio was unmapped: see gather.c,
 *   - not much more than the last batch of the same reason, if its time ended
 *     that one: unused destinations are allocated in vain.
 *
 * The first two bound the list that migrate_pages() cuts. The third and the
 * last are known when the first destination is allocated. A reason has one
 * migrator at a time, so no rate is that of two, unless a client uses another
 * one for that reason.
 *
 * The rate never makes a batch smaller than without a migrator, which is also
 * the limit before the first batch between two nodes has been measured.
 *
 * A larger batch is an advantage only because several CPUs or channels copy it.
 * If one CPU copied the last batch, because the migrator had no other or
 * rejected the batch, the limit falls back to that of a batch without a
 * migrator: a larger one would only make its folios wait for CPU time together.
 *
 * Such a batch also had the cost of the copy phase for nothing. If the migrator
 * expects the same of the next one (@serial of struct ferry_batch), the next
 * FERRY_REST_LISTS lists that this CPU migrates go without it: on a busy
 * machine, or with one thread, migration then costs no more than when off. If
 * the batch had fewer than FERRY_SHARED_BYTES, only lists of fewer go without
 * it: a few pages say nothing about large lists. A list that is smaller than
 * batch_min_bytes goes without it, too.
 *
 * The limits are single words and are read without a lock. A batch that sees
 * an old value is the same as a batch that began before the write.
 */

#include <linux/mm.h>
#include <linux/nodemask.h>
#include <linux/percpu.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "internal.h"

unsigned long ferry_batch_min_bytes = SZ_64K;
/* 16 folios of 2 MiB, or as many of 64 KiB as FERRY_BATCH_FOLIOS allows. */
unsigned long ferry_batch_max_bytes = SZ_32M;
/* A page fault on a migrating folio waits about as long as for a disk read. */
unsigned long ferry_batch_max_us = 4000;
/* The same for a single reason, 0 for the one above. */
unsigned long ferry_reason_max_us[FERRY_NR_REASONS];

/*
 * Recent copy rates for each reason from each node to each node, in bytes per
 * microsecond; 0 if unknown. Written and read without a lock: a lost update
 * loses a sample of a running mean.
 */
static unsigned long *ferry_rates;

/*
 * The bytes that a batch of each reason is expected to have time for; 0 if the
 * last ones had enough. Written and read as the rates.
 */
static unsigned long ferry_fits[FERRY_NR_REASONS];

/* So many that the cost of one list does not matter. */
#define FERRY_REST_LISTS	64

/* Lists that the CPU still migrates without the migrator: any, small ones. */
static DEFINE_PER_CPU(unsigned int, ferry_rest);
static DEFINE_PER_CPU(unsigned int, ferry_rest_small);

/**
 * ferry_limit() - compute the bytes that a batch may have
 * @rate:	bytes per microsecond, 0 if unknown
 * @max_us:	microseconds that the copy of a batch may take
 * @max_bytes:	most bytes at any rate
 *
 * Return: the limit in bytes, no less than a batch has without a migrator.
 */
unsigned long ferry_limit(unsigned long rate, unsigned long max_us,
			  unsigned long max_bytes)
{
	unsigned long bytes;

	if (check_mul_overflow(rate, max_us, &bytes))
		bytes = max_bytes;
	return max(min(bytes, max_bytes), FERRY_STOCK_BYTES);
}

/**
 * ferry_max_us() - the time limit of a batch
 * @reason: its reason
 *
 * Context: any.
 * Return: microseconds.
 */
unsigned long ferry_max_us(enum migrate_reason reason)
{
	return READ_ONCE(ferry_reason_max_us[reason]) ?:
	       READ_ONCE(ferry_batch_max_us);
}

/**
 * ferry_limit_of() - the bytes that a batch may have now
 * @reason:	reason of the migration
 * @from:	node of the first source
 * @to:		node of its destination
 *
 * Context: any.
 * Return: the limit in bytes.
 */
unsigned long ferry_limit_of(enum migrate_reason reason, int from, int to)
{
	unsigned long limit, fits = READ_ONCE(ferry_fits[reason]);

	limit = ferry_limit(ferry_rate(reason, from, to), ferry_max_us(reason),
			    READ_ONCE(ferry_batch_max_bytes));
	return fits ? min(limit, fits) : limit;
}

/**
 * ferry_fits_update() - learn whether a batch had time for its folios
 * @reason:	its reason
 * @bytes:	bytes of those that it had time for
 * @late:	its time ended it
 *
 * The next one may have an eighth more, and may be large enough for several
 * CPUs. A batch that reached the limit in time doubles it.
 *
 * Context: any.
 */
void ferry_fits_update(enum migrate_reason reason, size_t bytes, bool late)
{
	unsigned long fits = READ_ONCE(ferry_fits[reason]);

	if (late)
		fits = max(bytes + bytes / 8 + 1, FERRY_SHARED_BYTES);
	else if (!fits || bytes < fits)
		return;
	else if (check_mul_overflow(fits, 2UL, &fits))
		fits = 0;
	WRITE_ONCE(ferry_fits[reason], fits);
}

static unsigned long *ferry_rate_at(enum migrate_reason reason, int from,
				    int to)
{
	return &ferry_rates[(reason * nr_node_ids + from) * nr_node_ids + to];
}

/**
 * ferry_rate() - the mean rate of recent batches
 * @reason:	their reason
 * @from:	node of their first source
 * @to:		node of its destination
 *
 * Context: any.
 * Return: bytes per microsecond, 0 if unknown.
 */
unsigned long ferry_rate(enum migrate_reason reason, int from, int to)
{
	return READ_ONCE(*ferry_rate_at(reason, from, to));
}

/**
 * ferry_rate_update() - add a batch to the mean rate of those like it
 * @reason:	its reason
 * @from:	node of its first source
 * @to:		node of its first destination
 * @bytes:	bytes that the migrator copied, with more than the calling CPU
 * @ns:		nanoseconds that the copy took
 *
 * The mean is over about eight batches.
 *
 * Context: any.
 */
void ferry_rate_update(enum migrate_reason reason, int from, int to,
		       size_t bytes, u64 ns)
{
	unsigned long *rate = ferry_rate_at(reason, from, to);
	unsigned long old = READ_ONCE(*rate);
	unsigned long now = div64_u64((u64)bytes * NSEC_PER_USEC, ns ?: 1);

	WRITE_ONCE(*rate, old ? (7 * old + now) / 8 : now);
}

/**
 * ferry_gained_nothing() - learn that the migrator gained nothing
 * @batch: the batch, copied by the calling CPU alone, or rejected
 *
 * For the rate, a batch of fewer than 512 base pages does not count: it may
 * have been too small for more than one CPU, however many were idle.
 *
 * Context: any.
 */
void ferry_gained_nothing(const struct ferry_batch *batch)
{
	if (batch->bytes >= FERRY_BATCH_FOLIOS * PAGE_SIZE)
		WRITE_ONCE(*ferry_rate_at(batch->reason, batch->src_nid,
					  batch->dst_nid), 0);
	if (!batch->serial)
		return;
	if (batch->bytes < FERRY_SHARED_BYTES)
		this_cpu_write(ferry_rest_small, FERRY_REST_LISTS);
	else
		this_cpu_write(ferry_rest, FERRY_REST_LISTS);
}

static bool ferry_rest_next(unsigned int __percpu *rests)
{
	unsigned int *rest = get_cpu_ptr(rests);
	bool rest_now = *rest;

	*rest -= rest_now;
	put_cpu_ptr(rests);
	return rest_now;
}

static bool ferry_is_larger(const struct list_head *from, size_t than)
{
	const struct folio *src;
	size_t bytes = 0;

	list_for_each_entry(src, from, lru) {
		bytes += folio_size(src);
		if (bytes > than)
			return true;
	}
	return false;
}

static bool ferry_rests(const struct list_head *from)
{
	if (ferry_rest_next(&ferry_rest))
		return true;
	return raw_cpu_read(ferry_rest_small) &&
	       !ferry_is_larger(from, FERRY_SHARED_BYTES - 1) &&
	       ferry_rest_next(&ferry_rest_small);
}

/**
 * ferry_may_gain() - decide whether the migrator is used for a list
 * @from: folios to migrate
 *
 * A list that is larger than without a migrator must not be one batch, which
 * it would be without gathering. It was made before a rest began, or by a task
 * that has changed its CPU since, or batch_min_bytes is larger.
 *
 * Context: any.
 * Return: false if the list is to be migrated as without a migrator.
 */
bool ferry_may_gain(const struct list_head *from)
{
	size_t min = READ_ONCE(ferry_batch_min_bytes);
	bool small = min && !ferry_is_larger(from, min - 1);

	if (small && min <= FERRY_STOCK_BYTES)
		return false;
	return (!small && !ferry_rests(from)) ||
	       ferry_is_larger(from, FERRY_STOCK_BYTES);
}

/**
 * ferry_rates_forget() - forget all that was learned of another migrator
 * @reason: the reason that it copied for
 *
 * Context: any.
 */
void ferry_rates_forget(enum migrate_reason reason)
{
	unsigned int cpu, i;

	WRITE_ONCE(ferry_fits[reason], 0);
	for (i = 0; i < nr_node_ids * nr_node_ids; i++)
		WRITE_ONCE(*(ferry_rate_at(reason, 0, 0) + i), 0);
	for_each_possible_cpu(cpu) {
		per_cpu(ferry_rest, cpu) = 0;
		per_cpu(ferry_rest_small, cpu) = 0;
	}
}

/**
 * ferry_rates_init() - allocate the rates
 *
 * Context: boot.
 * Return: 0 or -ENOMEM.
 */
int __init ferry_rates_init(void)
{
	ferry_rates = kvcalloc(FERRY_NR_REASONS * nr_node_ids * nr_node_ids,
			       sizeof(*ferry_rates), GFP_KERNEL);
	return ferry_rates ? 0 : -ENOMEM;
}

/**
 * ferry_list_full() - check a list of folios for an offload migrator
 * @nr_folios:	folios gathered so far
 * @nr_pages:	their base pages
 *
 * Context: any.
 * Return: true if no folio may be added to the list.
 */
bool ferry_list_full(unsigned int nr_folios, unsigned long nr_pages)
{
	unsigned long max_bytes = READ_ONCE(ferry_batch_max_bytes);

	if (raw_cpu_read(ferry_rest))
		max_bytes = 0;
	return nr_folios >= FERRY_LOCKED_FOLIOS ||
	       nr_pages << PAGE_SHIFT >= max(max_bytes, FERRY_STOCK_BYTES);
}
