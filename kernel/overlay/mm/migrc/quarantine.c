// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: The quarantine
 *
 * A source folio whose flush was deferred is not freed. Migration keeps its
 * reference, and the folio waits in the quarantine of its node, in no free
 * list. So no allocation returns a page that a TLB still maps, and no unrelated
 * task has to flush for one. All folios leave together by a drain: one flush
 * for all address spaces, after which the references are dropped.
 *
 * A drain happens
 *
 *   - when the sources of a batch do not fit under the bound of their node: the
 *     migrating task drains;
 *   - when the oldest folio is max_age_ms old: a worker drains;
 *   - when memory is short (reclaim.c);
 *   - when the kernel drains other caches of free pages, or cannot proceed with
 *     pages that are neither free nor in use: drain_all_pages(), a compacted
 *     block, a range that is isolated or goes offline, a memory failure.
 *
 * The bound holds for the quarantine, and does not count the batches in
 * progress, which are as large as migrate_pages() makes them. A batch drains at
 * its end, when it holds no folio locked. The batch of an allocation within
 * another batch does not: the outer one has folios locked, so the worker
 * drains.
 *
 * Life cycle:
 *
 *   1. migrc_quarantine() adds the folios at the end of their batch. All their
 *      PTEs have been cleared and recorded (mm.c) before that.
 *   2. A drain removes the folios from the lists.
 *   3. Then it flushes.
 *   4. Then it frees them. Until then it is in migrc_active_drains, so that a
 *      caller that needs the pages can wait for the drains that began before.
 *
 * Locking: migrc_drain_mutex is held while folios are taken and flushed, not
 * while they are freed: its holder never does more than one flush. Each node
 * has a lock for its list and its size. migrc_drain_mutex -> migrc_flush_mutex
 * (mm.c); migrc_drain_mutex -> lock of a node; migrc_drain_mutex ->
 * migrc_active_lock. A drain allocates nothing, and takes no other lock that
 * reclaim holds, so reclaim may drain; it does not wait for the mutex.
 */

#include <kunit/static_stub.h>
#include <kunit/visibility.h>
#include <linux/folio_batch.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "internal.h"

/* Enough batches of 512 pages to make a flush rare, and little memory. */
#define MIGRC_BOUND_SHARE	32
#define MIGRC_BOUND_MAX		(SZ_256M >> PAGE_SHIFT)
#define MIGRC_AGE_MS		1000

/**
 * struct migrc_node - the quarantine of a memory node
 * @lock:	protects all fields
 * @folios:	the folios, the oldest first
 * @pages:	their size in base pages
 * @peak:	the greatest @pages since boot
 * @since:	jiffies when the first folio came
 * @checked:	the checker's clock then
 */
struct migrc_node {
	spinlock_t lock;	/* all fields */
	struct list_head folios;
	unsigned long pages;
	unsigned long peak;
	unsigned long since;
	s64 checked;
};

static struct migrc_node *migrc_nodes;	/* nr_node_ids of them */
VISIBLE_IF_KUNIT struct mutex migrc_drain_mutex =
	__MUTEX_INITIALIZER(migrc_drain_mutex);
/* Base pages that were taken for freeing. */
static atomic_long_t migrc_freeing;

static DEFINE_SPINLOCK(migrc_active_lock);	/* the next two */
/* Drains that have not freed all of their folios, the oldest first. */
static LIST_HEAD(migrc_active_drains);
static unsigned long migrc_drains_begun;
static DECLARE_WAIT_QUEUE_HEAD(migrc_freed);

static unsigned long migrc_max_pages = MIGRC_BOUND_MAX;
/* How long a folio may wait, in milliseconds. */
unsigned long migrc_max_age_ms = MIGRC_AGE_MS;

static struct workqueue_struct *migrc_wq;

static void migrc_drain_work_fn(struct work_struct *work)
{
	__migrc_drain(MIGRC_AGE);
}

static DECLARE_DELAYED_WORK(migrc_drain_work, migrc_drain_work_fn);

static void migrc_drain_within(unsigned int ms)
{
	mod_delayed_work(migrc_wq, &migrc_drain_work, msecs_to_jiffies(ms));
}

VISIBLE_IF_KUNIT unsigned long migrc_node_bound(int nid)
{
	return min(READ_ONCE(migrc_max_pages),
		   node_present_pages(nid) / MIGRC_BOUND_SHARE);
}

/* Under the lock of @node. */
static void migrc_node_add(struct migrc_node *node, struct folio *folio)
{
	bool first = list_empty(&node->folios);

	list_move_tail(&folio->lru, &node->folios);
	node->pages += folio_nr_pages(folio);
	node->peak = max(node->peak, node->pages);
	if (!first)
		return;
	node->since = jiffies;
	/* A drain that begins later sees @pages, which it reads unlocked. */
	node->checked = migrc_check_begin();
}

/*
 * Move those folios of the list that are of the node of its first one; if not
 * @all, only while they fit. Return how many were moved.
 */
static unsigned int migrc_node_fill(struct list_head *folios, bool all)
{
	int nid = folio_nid(list_first_entry(folios, struct folio, lru));
	unsigned long bound = migrc_node_bound(nid);
	struct migrc_node *node = &migrc_nodes[nid];
	struct folio *folio, *next;
	unsigned int moved = 0;

	spin_lock(&node->lock);
	list_for_each_entry_safe(folio, next, folios, lru) {
		if (folio_nid(folio) != nid)
			continue;
		if (!all && node->pages + folio_nr_pages(folio) > bound)
			break;
		migrc_node_add(node, folio);
		moved++;
	}
	spin_unlock(&node->lock);
	return moved;
}

VISIBLE_IF_KUNIT void migrc_free(struct list_head *folios)
{
	struct folio *folio, *next;
	struct folio_batch batch;

	KUNIT_STATIC_STUB_REDIRECT(migrc_free, folios);

	folio_batch_init(&batch);
	list_for_each_entry_safe(folio, next, folios, lru) {
		list_del(&folio->lru);
		/* A lookup that began before may still take and drop one. */
		VM_WARN_ON_ONCE_FOLIO(folio_mapped(folio), folio);
		if (!folio_batch_add(&batch, folio)) {
			folios_put(&batch);
			cond_resched();
		}
	}
	if (folio_batch_count(&batch))
		folios_put(&batch);
}

/* Take all folios, and return their pages. */
static long migrc_take(struct list_head *folios)
{
	long pages = 0;
	int nid;

	for (nid = 0; nid < nr_node_ids; nid++) {
		struct migrc_node *node = &migrc_nodes[nid];

		spin_lock(&node->lock);
		list_splice_tail_init(&node->folios, folios);
		pages += node->pages;
		atomic_long_add(node->pages, &migrc_freeing);
		/*
		 * A task that does not see @pages sees migrc_freeing, and that
		 * a drain began.
		 */
		smp_mb__after_atomic();
		WRITE_ONCE(node->pages, 0);
		spin_unlock(&node->lock);
	}
	return pages;
}

/* Before the drain takes folios. */
VISIBLE_IF_KUNIT void migrc_drain_begin(struct migrc_active_drain *drain)
{
	spin_lock(&migrc_active_lock);
	drain->nr = migrc_drains_begun + 1;
	WRITE_ONCE(migrc_drains_begun, drain->nr);
	list_add_tail(&drain->node, &migrc_active_drains);
	spin_unlock(&migrc_active_lock);
}

/* After it has freed them. */
VISIBLE_IF_KUNIT void migrc_drain_end(struct migrc_active_drain *drain)
{
	spin_lock(&migrc_active_lock);
	list_del(&drain->node);
	spin_unlock(&migrc_active_lock);
	wake_up_all(&migrc_freed);
}

static bool migrc_drains_ended(unsigned long nr)
{
	struct migrc_active_drain *oldest;

	guard(spinlock)(&migrc_active_lock);
	oldest = list_first_entry_or_null(&migrc_active_drains,
					  struct migrc_active_drain, node);
	return !oldest || oldest->nr > nr;
}

/*
 * Wait for all drains that have begun, but not for later ones: if each batch
 * drains, because the bound is small, one may always be active.
 */
static void migrc_wait_freed(void)
{
	unsigned long nr;

	/* Pairs with the barrier of migrc_take(). */
	smp_rmb();
	nr = READ_ONCE(migrc_drains_begun);
	wait_event(migrc_freed, migrc_drains_ended(nr));
}

/* Drain, and free the folios of the list as well. */
static void migrc_drain_with(struct list_head *folios, enum migrc_cause cause)
{
	struct migrc_active_drain drain;
	struct folio *folio;
	long pages = 0;

	/* Direct reclaim does not queue: the task with the mutex drains. */
	if (cause == MIGRC_PRESSURE) {
		if (!mutex_trylock(&migrc_drain_mutex))
			return;
	} else {
		mutex_lock(&migrc_drain_mutex);
	}
	migrc_drain_begin(&drain);
	list_for_each_entry(folio, folios, lru)
		pages += folio_nr_pages(folio);
	atomic_long_add(pages, &migrc_freeing);
	pages += migrc_take(folios);
	/* Also if the list is empty: a file or an mm may still need it. */
	if (!migrc_should_fail(MIGRC_FAIL_DRAIN))
		migrc_flush_mms();
	mutex_unlock(&migrc_drain_mutex);

	migrc_free(folios);
	atomic_long_sub(pages, &migrc_freeing);
	migrc_drain_end(&drain);
	migrc_count_flush(cause);
}

/**
 * migrc_quarantine() - keep the sources of a batch until their flush
 * @batch: the batch, all migrated
 *
 * Context: process context. May sleep.
 */
void migrc_quarantine(struct migrc_batch *batch)
{
	bool nested = batch->outer;
	LIST_HEAD(over);

	while (!list_empty(&batch->sources)) {
		if (!migrc_node_fill(&batch->sources, nested))
			list_move(batch->sources.next, &over);
	}
	if (!list_empty(&over))
		migrc_drain_with(&over, MIGRC_FULL);
	else if (nested)
		migrc_drain_within(0);
	else if (!delayed_work_pending(&migrc_drain_work))
		migrc_drain_within(READ_ONCE(migrc_max_age_ms));
}

/* See migrc_drain(). */
void __migrc_drain(enum migrc_cause cause)
{
	bool for_pages = cause == MIGRC_DRAIN || cause == MIGRC_COMPACTION ||
			 cause == MIGRC_PRESSURE;
	LIST_HEAD(folios);

	if (migrc_should_fail(cause))
		return;
	if (!for_pages || migrc_quarantined())
		migrc_drain_with(&folios, cause);
	/* These need each page in the free lists. */
	if (cause == MIGRC_DRAIN || cause == MIGRC_FAILURE)
		migrc_wait_freed();
}

/**
 * migrc_node_quarantined() - size of the quarantine of a node
 * @nid: the node
 *
 * Context: any.
 * Return: base pages.
 */
unsigned long migrc_node_quarantined(int nid)
{
	return READ_ONCE(migrc_nodes[nid].pages);
}

/**
 * migrc_quarantined() - size of the quarantine of all nodes
 *
 * Context: any.
 * Return: base pages.
 */
unsigned long migrc_quarantined(void)
{
	unsigned long pages = 0;
	int nid;

	for_each_node_state(nid, N_MEMORY)
		pages += migrc_node_quarantined(nid);
	return pages;
}

/**
 * migrc_being_freed() - size of what drains have flushed and not yet freed
 *
 * Context: any.
 * Return: base pages.
 */
unsigned long migrc_being_freed(void)
{
	return atomic_long_read(&migrc_freeing);
}

/**
 * migrc_quarantine_peak() - greatest size of a node's quarantine since boot
 *
 * Context: any.
 * Return: base pages.
 */
unsigned long migrc_quarantine_peak(void)
{
	unsigned long peak = 0;
	int nid;

	for_each_node(nid)
		peak = max(peak, READ_ONCE(migrc_nodes[nid].peak));
	return peak;
}

/**
 * migrc_quarantine_oldest_ms() - age of the oldest folio
 *
 * Context: any.
 * Return: milliseconds, 0 if the quarantine is empty.
 */
unsigned int migrc_quarantine_oldest_ms(void)
{
	unsigned long oldest = 0;
	int nid;

	for_each_node_state(nid, N_MEMORY) {
		if (migrc_node_quarantined(nid))
			oldest = max(oldest, jiffies -
				     READ_ONCE(migrc_nodes[nid].since));
	}
	return jiffies_to_msecs(oldest);
}

#ifdef CONFIG_MIGRC_DEBUG
/**
 * migrc_check_drained() - check a drain of the lists of free pages
 * @start: value of migrc_check_begin() before the drain
 *
 * Context: process context.
 */
void migrc_check_drained(s64 start)
{
	bool found = false;
	int nid;

	for (nid = 0; nid < nr_node_ids && !found; nid++) {
		struct migrc_node *node = &migrc_nodes[nid];

		spin_lock(&node->lock);
		found = !list_empty(&node->folios) && node->checked < start;
		spin_unlock(&node->lock);
	}
	if (found)
		migrc_check_report("a page is in quarantine after a drain",
				   NULL);
}
#endif

/**
 * migrc_bound() - greatest size that the quarantine of a node may have
 *
 * A node's quarantine also holds no more than a fixed share of the node.
 *
 * Context: any.
 * Return: base pages, 0 if no flush is to be deferred.
 */
unsigned long migrc_bound(void)
{
	return READ_ONCE(migrc_max_pages);
}

/**
 * migrc_set_bound() - change the bound
 * @pages: base pages
 *
 * If the quarantine of a node is larger than the new bound, all are drained.
 *
 * Context: process context. May sleep.
 */
void migrc_set_bound(unsigned long pages)
{
	int nid;

	WRITE_ONCE(migrc_max_pages, pages);
	for_each_node_state(nid, N_MEMORY) {
		if (migrc_node_quarantined(nid) > pages) {
			__migrc_drain(MIGRC_FULL);
			break;
		}
	}
}

/**
 * migrc_apply_max_age() - rearm the worker after a write of migrc_max_age_ms
 *
 * The worker stays armed after a drain by others, so also an empty quarantine
 * needs this: migrc_quarantine() does not rearm it.
 *
 * Context: process context.
 */
void migrc_apply_max_age(void)
{
	if (delayed_work_pending(&migrc_drain_work))
		migrc_drain_within(READ_ONCE(migrc_max_age_ms));
}

static int __init migrc_quarantine_init(void)
{
	int nid;

	migrc_nodes = kcalloc(nr_node_ids, sizeof(*migrc_nodes), GFP_KERNEL);
	/* A worker that frees memory must not wait for memory. */
	migrc_wq = alloc_workqueue("migrc", WQ_UNBOUND | WQ_MEM_RECLAIM, 1);
	if (!migrc_nodes || !migrc_wq)
		panic("migrc: out of memory\n");
	for (nid = 0; nid < nr_node_ids; nid++) {
		spin_lock_init(&migrc_nodes[nid].lock);
		INIT_LIST_HEAD(&migrc_nodes[nid].folios);
	}
	return 0;
}
subsys_initcall(migrc_quarantine_init);
