// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Limits of a batch
 *
 * batch_min_bytes is the size below which the call of a migrator costs more
 * than it gains. The rest of this file bounds a batch from above.
 *
 * All folios of a batch are locked and unmapped until the last one is copied,
 * so a task that touches one of them waits. Without an offload migrator
 * mm/migrate.c bounds a batch by 512 base pages, or by those of a PMD, which
 * are more where base pages are larger than 4 KiB. With an offload migrator
 * selected, mm/migrate.c ends a batch at the first of these:
 *
 *   - as many folios as that, so a batch never locks more than without it,
 *   - batch_max_bytes,
 *   - the bytes that the migrator copies in batch_max_us, according to the rate
 *     of its recent batches.
 *
 * A batch may always be as large as without a migrator, which is also the limit
 * before the first batch has been measured.
 *
 * A larger batch is an advantage only because several CPUs or channels copy it.
 * If one CPU copied the last batch, because no other was idle or all DMA
 * channels were in use, the limit falls back to that of a batch without a
 * migrator: a larger one would only make its folios wait for CPU time together.
 *
 * The limits are single words and are read without a lock. A batch that sees
 * an old value is the same as a batch that began before the write.
 */

#include <linux/list.h>
#include <linux/mm.h>
#include <linux/sizes.h>

#include "internal.h"

unsigned long ferry_batch_min_bytes = SZ_64K;
/* 16 folios of 2 MiB, or as many of 64 KiB as FERRY_BATCH_FOLIOS allows. */
unsigned long ferry_batch_max_bytes = SZ_32M;
/* A page fault on a migrating folio waits about as long as for a disk read. */
unsigned long ferry_batch_max_us = 4000;

/* Bytes that a batch may have now, set by ferry_limit_update(). */
static unsigned long ferry_limit_bytes;

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
 * ferry_limit_update() - set the limit from a migrator's rate
 * @entry: the selected migrator, NULL when off
 *
 * Context: any. Of several updates at once one takes effect.
 */
void ferry_limit_update(const struct ferry_entry *entry)
{
	unsigned long rate = entry ? READ_ONCE(entry->rate) : 0;

	WRITE_ONCE(ferry_limit_bytes,
		   ferry_limit(rate, READ_ONCE(ferry_batch_max_us),
			       READ_ONCE(ferry_batch_max_bytes)));
}

/** ferry_limit_refresh() - apply a limit that was written in sysfs */
void ferry_limit_refresh(void)
{
	int idx = srcu_read_lock(&ferry_srcu);

	ferry_limit_update(ferry_selected());
	srcu_read_unlock(&ferry_srcu, idx);
}

/**
 * ferry_rate_update() - add a batch to a migrator's mean rate
 * @entry:	the migrator
 * @bytes:	bytes that it copied, with more than the calling CPU
 * @ns:		nanoseconds that the copy took
 *
 * Context: any. Updates may race: a lost one loses a sample of a running mean
 * over about eight.
 */
void ferry_rate_update(struct ferry_entry *entry, size_t bytes, u64 ns)
{
	unsigned long old = READ_ONCE(entry->rate);
	unsigned long now = div64_u64((u64)bytes * NSEC_PER_USEC, ns ?: 1);

	WRITE_ONCE(entry->rate, old ? (7 * old + now) / 8 : now);
	ferry_limit_update(entry);
}

/**
 * ferry_rate_reset() - forget a migrator's rate after one CPU copied a batch
 * @entry:	the migrator that copied on the calling CPU alone, or rejected
 * @batch:	the batch
 *
 * A batch of fewer than 512 base pages does not count: it may have been too
 * small for more than one CPU, however many were idle.
 *
 * Context: any.
 */
void ferry_rate_reset(struct ferry_entry *entry,
		      const struct ferry_batch *batch)
{
	if (batch->bytes < FERRY_BATCH_FOLIOS * PAGE_SIZE)
		return;
	WRITE_ONCE(entry->rate, 0);
	ferry_limit_update(entry);
}

bool __ferry_batch_full(unsigned int nr_folios, unsigned long nr_pages)
{
	return nr_folios >= FERRY_LOCKED_FOLIOS ||
	       nr_pages << PAGE_SHIFT >= max(READ_ONCE(ferry_limit_bytes),
					     FERRY_STOCK_BYTES);
}

void __ferry_cut_batch(struct list_head *folios, struct list_head *batch)
{
	unsigned long nr = 0;

	do {
		list_move_tail(folios->next, batch);
	} while (!list_empty(folios) && ++nr < FERRY_LOCKED_FOLIOS);
}
