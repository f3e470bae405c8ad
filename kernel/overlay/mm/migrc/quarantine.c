// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: The quarantine
 *
 * A source folio whose flush was deferred is not freed: migration's reference is kept, and
 * the folio waits here, in no free list, so that nobody can be given a page that a TLB still
 * knows, and nobody unrelated flushes for it. All leave together, by a drain: one flush for
 * all address spaces, then the references are dropped.
 *
 * Drains happen when the next batch may not fit under the bound (done by who migrates), when
 * the oldest folio is max_age_ms old (done by a worker), when memory is short (reclaim.c),
 * and where the kernel drains other places that keep free pages, or cannot do with pages that
 * are neither free nor anybody's: drain_all_pages(), a compacted block, a block that goes
 * offline, a memory failure.
 *
 * The bound holds always: a batch reserves its room before it defers anything, and defers
 * no more than that.
 *
 * Life cycle: folios come in by migrc_quarantine(), at the end of their batch, when all
 * their PTEs have long been cleared and noted (mm.c); a drain first takes the folios off,
 * then begins the flush, then frees them.
 *
 * Lock order: migrc_drain_mutex -> migrc_lock; migrc_drain_mutex -> migrc_mms_lock.
 * Under the mutex nothing is allocated and no other lock that reclaim holds is taken, so it
 * may be taken within reclaim.
 */

#include <linux/folio_batch.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/sizes.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "internal.h"

/* As many batches of 512 pages as make a flush rare, and little enough not to be missed. */
#define MIGRC_BOUND_SHARE	32
#define MIGRC_BOUND_MAX		(SZ_256M >> PAGE_SHIFT)
#define MIGRC_AGE_MS		1000

static DEFINE_MUTEX(migrc_drain_mutex);
static DEFINE_SPINLOCK(migrc_lock);
static LIST_HEAD(migrc_folios);
static unsigned long migrc_pages;	/* of migrc_folios */
static unsigned long migrc_peak;
static unsigned long migrc_since;	/* jiffies when the first of them came */

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
 * Return: what was had of it, for migrc_unreserve().
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
 * @batch: the batch, all moved; its room is reserved
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

/* Who asks for pages has nothing to wait for when there are none, nor a drain under way. */
static bool cause_is_for_pages(enum migrc_cause cause)
{
	return cause == MIGRC_DRAIN || cause == MIGRC_COMPACTION || cause == MIGRC_PRESSURE;
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

	/* Also without folios: a file's note, or a space, may be all that is left. */
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
 * migrc_quarantined() - what is in quarantine
 *
 * Context: any.
 * Return: base pages.
 */
unsigned long migrc_quarantined(void)
{
	return READ_ONCE(migrc_pages);
}

/**
 * migrc_quarantine_peak() - the most that ever was
 *
 * Context: any.
 * Return: base pages.
 */
unsigned long migrc_quarantine_peak(void)
{
	return READ_ONCE(migrc_peak);
}

/**
 * migrc_quarantine_oldest_ms() - how long the oldest has waited
 *
 * Context: any.
 * Return: milliseconds, 0 when there is none.
 */
unsigned int migrc_quarantine_oldest_ms(void)
{
	return migrc_quarantined() ? jiffies_to_msecs(jiffies - READ_ONCE(migrc_since)) : 0;
}

/**
 * migrc_bound() - the most that may be in quarantine
 *
 * Context: any.
 * Return: base pages.
 */
unsigned long migrc_bound(void)
{
	return READ_ONCE(migrc_max_pages);
}

/**
 * migrc_set_bound() - change it
 * @pages: base pages
 *
 * Context: process context. May sleep. What is there beyond the new bound is drained, but
 * for batches that have reserved their room already.
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
	/* Freeing must not wait for memory. */
	migrc_wq = alloc_workqueue("migrc", WQ_UNBOUND | WQ_MEM_RECLAIM, 1);
	return migrc_wq ? 0 : -ENOMEM;
}
subsys_initcall(migrc_quarantine_init);
