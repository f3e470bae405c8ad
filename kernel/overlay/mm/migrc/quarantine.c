// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: The quarantine
 *
 * A source folio whose flush was deferred is not freed. Migration keeps its
 * reference, and the folio waits in the quarantine, in no free list. So no
 * allocation returns a page that a TLB still maps, and no unrelated task has to
 * flush for one. All folios leave together by a drain: one flush for all
 * address spaces, after which the references are dropped.
 *
 * A drain happens
 *
 *   - when the next batch may not fit under the bound: the migrating task
 *     drains;
 *   - when the oldest folio is max_age_ms old: a worker drains;
 *   - when memory is short (reclaim.c);
 *   - when the kernel drains other caches of free pages, or cannot proceed with
 *     pages that are neither free nor in use: drain_all_pages(), a compacted
 *     block, a block that goes offline, a memory failure.
 *
 * The bound always holds: a batch reserves its room before it defers a flush,
 * and defers no more than it reserved.
 *
 * Life cycle:
 *
 *   1. migrc_quarantine() adds the folios at the end of their batch. All their
 *      PTEs have been cleared and recorded (mm.c) before that.
 *   2. A drain removes the folios from the list.
 *   3. Then it begins the flush.
 *   4. Then it frees them.
 *
 * Locking: migrc_drain_mutex serialises drains. migrc_lock protects the list
 * and its size. migrc_drain_mutex -> migrc_lock; migrc_drain_mutex ->
 * migrc_mms_lock. A drain allocates nothing under the mutex, and takes no other
 * lock that reclaim holds, so reclaim may take the mutex.
 */

#include <linux/folio_batch.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/sizes.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "internal.h"

/* Enough batches of 512 pages to make a flush rare, and little memory. */
#define MIGRC_BOUND_SHARE	32
#define MIGRC_BOUND_MAX		(SZ_256M >> PAGE_SHIFT)
#define MIGRC_AGE_MS		1000

static DEFINE_MUTEX(migrc_drain_mutex);
static DEFINE_SPINLOCK(migrc_lock);
static LIST_HEAD(migrc_folios);
static unsigned long migrc_pages;	/* of migrc_folios */
static unsigned long migrc_peak;
static unsigned long migrc_since;	/* jiffies when the first one came */

/* Pages in the quarantine and those reserved for batches under way. */
static atomic_long_t migrc_taken;
static unsigned long migrc_max_pages;
/* How long a folio may wait, in milliseconds. */
unsigned long migrc_max_age_ms = MIGRC_AGE_MS;

static struct workqueue_struct *migrc_wq;

static void migrc_too_old(struct work_struct *work)
{
	__migrc_drain(MIGRC_AGE);
}

static DECLARE_DELAYED_WORK(migrc_age_work, migrc_too_old);

/**
 * migrc_reserve() - take room in the quarantine
 * @pages: how much, in base pages
 *
 * Context: any.
 * Return: base pages that were reserved, for migrc_unreserve().
 */
long migrc_reserve(long pages)
{
	long taken = atomic_long_add_return(pages, &migrc_taken);
	long over = taken - (long)READ_ONCE(migrc_max_pages);

	if (over <= 0)
		return pages;
	over = min(over, pages);
	atomic_long_sub(over, &migrc_taken);
	return pages - over;
}

/**
 * migrc_unreserve() - give room back
 * @pages: how much, in base pages
 *
 * Context: any.
 */
void migrc_unreserve(long pages)
{
	if (pages)
		atomic_long_sub(pages, &migrc_taken);
}

/**
 * migrc_quarantine() - keep the sources of a batch until their flush
 * @batch: the batch, all migrated; its room is reserved
 *
 * Context: process context.
 */
void migrc_quarantine(struct migrc_batch *batch)
{
	bool first;

	spin_lock(&migrc_lock);
	first = list_empty(&migrc_folios);
	if (first) {
		migrc_since = jiffies;
		migrc_check_waits(true);
	}
	list_splice_tail_init(&batch->sources, &migrc_folios);
	migrc_pages += batch->nr_kept;
	migrc_peak = max(migrc_peak, migrc_pages);
	spin_unlock(&migrc_lock);
	if (first)
		mod_delayed_work(migrc_wq, &migrc_age_work,
				 msecs_to_jiffies(READ_ONCE(migrc_max_age_ms)));
}

static void migrc_free(struct list_head *folios)
{
	struct folio *folio, *next;
	struct folio_batch batch;

	folio_batch_init(&batch);
	list_for_each_entry_safe(folio, next, folios, lru) {
		list_del(&folio->lru);
		if (!folio_batch_add(&batch, folio)) {
			folios_put(&batch);
			cond_resched();
		}
	}
	if (folio_batch_count(&batch))
		folios_put(&batch);
}

/*
 * A caller that needs pages has nothing to wait for if the quarantine is empty
 * and no drain is in progress.
 */
static bool cause_is_for_pages(enum migrc_cause cause)
{
	return cause == MIGRC_DRAIN || cause == MIGRC_COMPACTION ||
	       cause == MIGRC_PRESSURE;
}

/* See migrc_drain(). */
void __migrc_drain(enum migrc_cause cause)
{
	LIST_HEAD(folios);
	unsigned long pages;

	if (cause_is_for_pages(cause) && !atomic_long_read(&migrc_taken))
		return;
	if (migrc_should_fail(cause))
		return;
	mutex_lock(&migrc_drain_mutex);
	spin_lock(&migrc_lock);
	list_splice_init(&migrc_folios, &folios);
	pages = migrc_pages;
	migrc_pages = 0;
	migrc_check_waits(false);
	spin_unlock(&migrc_lock);

	/* Also if the list is empty: a file or an mm may still need it. */
	if (!migrc_should_fail(MIGRC_FAIL_DRAIN))
		migrc_flush_mms();
	if (pages) {
		migrc_free(&folios);
		migrc_unreserve(pages);
	}
	if (pages || !cause_is_for_pages(cause))
		migrc_count_flush(cause);
	mutex_unlock(&migrc_drain_mutex);
}

/**
 * migrc_quarantined() - size of the quarantine
 *
 * Context: any.
 * Return: base pages.
 */
unsigned long migrc_quarantined(void)
{
	return READ_ONCE(migrc_pages);
}

/**
 * migrc_quarantine_peak() - greatest size of the quarantine since boot
 *
 * Context: any.
 * Return: base pages.
 */
unsigned long migrc_quarantine_peak(void)
{
	return READ_ONCE(migrc_peak);
}

/**
 * migrc_quarantine_oldest_ms() - age of the oldest folio
 *
 * Context: any.
 * Return: milliseconds, 0 if the quarantine is empty.
 */
unsigned int migrc_quarantine_oldest_ms(void)
{
	if (!migrc_quarantined())
		return 0;
	return jiffies_to_msecs(jiffies - READ_ONCE(migrc_since));
}

/**
 * migrc_bound() - greatest size that the quarantine may have
 *
 * Context: any.
 * Return: base pages.
 */
unsigned long migrc_bound(void)
{
	return READ_ONCE(migrc_max_pages);
}

/**
 * migrc_set_bound() - change the bound
 * @pages: base pages
 *
 * If the quarantine is larger than the new bound, it is drained. Batches that
 * have already reserved their room may exceed the new bound.
 *
 * Context: process context. May sleep.
 */
void migrc_set_bound(unsigned long pages)
{
	WRITE_ONCE(migrc_max_pages, pages);
	if (migrc_quarantined() > pages)
		__migrc_drain(MIGRC_FULL);
}

/**
 * migrc_apply_max_age() - rearm the worker after a write of migrc_max_age_ms
 *
 * Context: process context.
 */
void migrc_apply_max_age(void)
{
	if (migrc_quarantined())
		mod_delayed_work(migrc_wq, &migrc_age_work,
				 msecs_to_jiffies(READ_ONCE(migrc_max_age_ms)));
}

static int __init migrc_quarantine_init(void)
{
	migrc_max_pages = min(totalram_pages() / MIGRC_BOUND_SHARE,
			      (unsigned long)MIGRC_BOUND_MAX);
	/* A worker that frees memory must not wait for memory. */
	migrc_wq = alloc_workqueue("migrc", WQ_UNBOUND | WQ_MEM_RECLAIM, 1);
	return migrc_wq ? 0 : -ENOMEM;
}
subsys_initcall(migrc_quarantine_init);
