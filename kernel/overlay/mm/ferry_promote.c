// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: NUMA balancing in batches
 *
 * A hinting fault migrates one folio, while its task waits. If an offload
 * migrator is selected for NUMA balancing, or runs are on, the folio waits for
 * others instead:
 *
 *   1. The fault isolates the folio, adds it to the list of its target node,
 *      maps it where it is, and returns.
 *   2. When the list has FERRY_LIST_PAGES base pages, or FERRY_PROMOTE_DELAY
 *      after its first folio, a work migrates it. migrate_pages() gets the
 *      folios of one memory cgroup and one node at a time, because the events
 *      of NUMA balancing are counted for these.
 *
 * A fault that finds a list with twice as many pages migrates its folio itself:
 * the work does not keep up, and the faults must be slowed down. So must that
 * of a folio which is a list of its own.
 *
 * Reclaim does not see folios that wait. The fault migrates its folio itself if
 * less than such a list is left in the LRU lists of the folio's memory cgroup:
 * otherwise a small cgroup might find nothing to reclaim, and kill a task.
 *
 * The scheduler is told at once that the memory is on the target node, as after
 * a migration. It would else move the task to where the memory leaves.
 *
 * The work is none of the task's, so what confines the allocations of a task
 * must be checked before: a node that its cpuset forbids is left to the fault,
 * whose allocation then fails.
 *
 * Nothing is locked while a folio waits. It is isolated, so other users of
 * isolated folios fail with it or try again, as they do during the migration
 * itself; the delay bounds for how long. The list has the isolation's
 * reference. If the folio is unmapped and freed by all others, the work frees
 * it, and does not count it as migrated.
 *
 * mbind(2), move_pages(2), offlining of memory and contiguous allocation must
 * find each folio of a range. They disable the caches of the LRU lists. This
 * drains the lists here, too, and no folio is added until they are enabled: a
 * policy that is set meanwhile cannot be undone by a fault that came before it.
 *
 * Locking: the lock of a list is taken with no other lock held; the work is
 * queued under it. The work takes the locks of a migration in MIGRATE_ASYNC
 * mode and allocates without reclaim, so a task may wait for it that holds none
 * of those locks.
 */

#include <kunit/visibility.h>
#include <linux/cpuset.h>
#include <linux/ferry_promote.h>
#include <linux/init.h>
#include <linux/list.h>
#include <linux/memcontrol.h>
#include <linux/migrate.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/swap.h>
#include <linux/workqueue.h>

#include "internal.h"

#define FERRY_PROMOTE_MAX	(2 * FERRY_LIST_PAGES)

/**
 * struct ferry_promotions - folios that wait for their migration to a node
 * @lock:	protects @folios and @nr_pages
 * @folios:	the folios, isolated
 * @nr_pages:	their base pages
 * @work:	migrates them
 */
struct ferry_promotions {
	spinlock_t lock;	/* the folios */
	struct list_head folios;
	unsigned long nr_pages;
	struct delayed_work work;
};

static struct ferry_promotions *ferry_promotions;	/* by node */
static struct workqueue_struct *ferry_promote_wq;

/* In jiffies. A hinting fault of the same page comes a scan period later. */
VISIBLE_IF_KUNIT unsigned long ferry_promote_delay = HZ / 100 ?: 1;

/* Whether reclaim still finds folios of the folio's memory cgroup. */
static bool ferry_leaves_enough(struct folio *folio)
{
	struct mem_cgroup *memcg;
	unsigned long left = 0;
	struct lruvec *lruvec;
	enum lru_list lru;

	guard(rcu)();
	memcg = folio_memcg(folio);
	if (!memcg || mem_cgroup_is_root(memcg))
		return true;
	lruvec = mem_cgroup_lruvec(memcg, folio_pgdat(folio));
	for_each_evictable_lru(lru)
		left += lruvec_lru_size(lruvec, lru, MAX_NR_ZONES - 1);
	return left >= FERRY_PROMOTE_MAX;
}

bool __ferry_promote(struct folio *folio, int node)
{
	struct ferry_promotions *promotions = &ferry_promotions[node];
	unsigned long nr = folio_nr_pages(folio);

	if (!ferry_promotions || nr >= FERRY_LIST_PAGES ||
	    !__ferry_wants_long_lists(MR_NUMA_MISPLACED) ||
	    !ferry_leaves_enough(folio))
		return false;
	if (!cpuset_zone_allowed(NODE_DATA(node)->node_zones,
				 GFP_HIGHUSER_MOVABLE))
		return false;
	scoped_guard(spinlock, &promotions->lock) {
		/* Under the lock, see ferry_promote_drain(). */
		if (promotions->nr_pages + nr > FERRY_PROMOTE_MAX ||
		    lru_cache_disabled())
			return false;
		list_add_tail(&folio->lru, &promotions->folios);
		promotions->nr_pages += nr;
		if (promotions->nr_pages >= FERRY_LIST_PAGES)
			mod_delayed_work(ferry_promote_wq, &promotions->work,
					 0);
		else if (promotions->nr_pages == nr)
			queue_delayed_work(ferry_promote_wq, &promotions->work,
					   READ_ONCE(ferry_promote_delay));
	}
	return true;
}

/**
 * ferry_promote_drain() - migrate the folios that wait, and wait for that
 *
 * lru_cache_disable() calls it. No folio waits any more, until the caches of
 * the LRU lists are enabled again: lru_cache_disable() has waited for all RCU
 * readers since it disabled them, so no task that saw them enabled is within
 * the lock of a list, and the work of every folio is queued.
 *
 * Context: process context, no lock of a migration held. May sleep.
 */
void ferry_promote_drain(void)
{
	int node;

	for (node = 0; ferry_promotions && node < nr_node_ids; node++)
		flush_delayed_work(&ferry_promotions[node].work);
}

/* Those that the list alone refers to: migrate_pages() would count them. */
static void ferry_put_freed(struct list_head *from)
{
	struct folio *folio, *next;
	LIST_HEAD(freed);

	list_for_each_entry_safe(folio, next, from, lru)
		if (folio_ref_count(folio) == 1)
			list_move(&folio->lru, &freed);
	putback_movable_pages(&freed);
}

/*
 * Move all folios of the same memory cgroup and node as the first. They have
 * one order, too: migrate_pages() gives up when it cannot allocate one folio,
 * and smaller ones may still find memory.
 */
VISIBLE_IF_KUNIT void ferry_take_alike(struct list_head *from,
				       struct list_head *to)
{
	struct folio *first = list_first_entry(from, struct folio, lru);
	struct folio *folio, *next;

	list_for_each_entry_safe(folio, next, from, lru)
		if (folio_nid(folio) == folio_nid(first) &&
		    folio_order(folio) == folio_order(first) &&
		    folio_memcg_charged(folio) == folio_memcg_charged(first) &&
		    folio_memcg(folio) == folio_memcg(first))
			list_move_tail(&folio->lru, to);
}

static void ferry_promote_work(struct work_struct *work)
{
	struct ferry_promotions *promotions =
		container_of(to_delayed_work(work), struct ferry_promotions,
			     work);
	int node = promotions - ferry_promotions;
	struct mem_cgroup *memcg;
	struct folio *first;
	LIST_HEAD(all);
	LIST_HEAD(alike);

	scoped_guard(spinlock, &promotions->lock) {
		list_splice_init(&promotions->folios, &all);
		promotions->nr_pages = 0;
	}
	ferry_put_freed(&all);
	while (!list_empty(&all)) {
		first = list_first_entry(&all, struct folio, lru);
		memcg = get_mem_cgroup_from_folio(first);
		scoped_guard(rcu)
			ferry_take_alike(&all, &alike);
		migrate_misplaced_folios(&alike, memcg, folio_nid(first), node);
		mem_cgroup_put(memcg);
		cond_resched();
	}
}

static int __init ferry_promote_init(void)
{
	struct ferry_promotions *promotions;
	int node;

	/* Contiguous allocation may wait for it, to write back memory. */
	ferry_promote_wq = alloc_workqueue("ferry_promote",
					   WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!ferry_promote_wq)
		return -ENOMEM;
	promotions = kcalloc(nr_node_ids, sizeof(*promotions), GFP_KERNEL);
	if (!promotions) {
		destroy_workqueue(ferry_promote_wq);
		return -ENOMEM;
	}
	for (node = 0; node < nr_node_ids; node++) {
		spin_lock_init(&promotions[node].lock);
		INIT_LIST_HEAD(&promotions[node].folios);
		INIT_DELAYED_WORK(&promotions[node].work, ferry_promote_work);
	}
	/* Pairs with the address dependency in __ferry_promote(). */
	smp_store_release(&ferry_promotions, promotions);
	return 0;
}
late_initcall(ferry_promote_init);
