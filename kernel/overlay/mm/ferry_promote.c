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
 * The work is none of the task's, so what confines the allocations of a task
 * must be checked before: a node that its cpuset forbids is left to the fault,
 * whose allocation then fails.
 *
 * Nothing is locked while a folio waits. It is isolated, so other users of
 * isolated folios fail with it or try again, as they do during the migration
 * itself; the delay bounds for how long. The list has the isolation's
 * reference. If the folio is unmapped and freed by all others, migrate_pages()
 * frees it.
 *
 * Locking: the lock of a list is taken last, with no other lock held.
 */

#include <linux/cpuset.h>
#include <linux/ferry_promote.h>
#include <linux/init.h>
#include <linux/list.h>
#include <linux/memcontrol.h>
#include <linux/migrate.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

/* A hinting fault of the same page comes no sooner than after a scan period. */
#define FERRY_PROMOTE_DELAY	(HZ / 100 ?: 1)
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

bool __ferry_promote(struct folio *folio, int node)
{
	struct ferry_promotions *promotions = &ferry_promotions[node];
	unsigned long nr = folio_nr_pages(folio), waiting;

	if (!ferry_promotions || nr >= FERRY_LIST_PAGES ||
	    !__ferry_wants_long_lists(MR_NUMA_MISPLACED))
		return false;
	if (!cpuset_zone_allowed(NODE_DATA(node)->node_zones,
				 GFP_HIGHUSER_MOVABLE))
		return false;
	scoped_guard(spinlock, &promotions->lock) {
		if (promotions->nr_pages + nr > FERRY_PROMOTE_MAX)
			return false;
		list_add_tail(&folio->lru, &promotions->folios);
		promotions->nr_pages += nr;
		waiting = promotions->nr_pages;
	}
	if (waiting >= FERRY_LIST_PAGES)
		mod_delayed_work(system_dfl_wq, &promotions->work, 0);
	else if (waiting == nr)
		queue_delayed_work(system_dfl_wq, &promotions->work,
				   FERRY_PROMOTE_DELAY);
	return true;
}

/* Move all folios of the same memory cgroup and node as the first. */
static void ferry_take_alike(struct list_head *from, struct list_head *to)
{
	struct folio *first = list_first_entry(from, struct folio, lru);
	struct folio *folio, *next;

	list_for_each_entry_safe(folio, next, from, lru)
		if (folio_nid(folio) == folio_nid(first) &&
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

	promotions = kcalloc(nr_node_ids, sizeof(*promotions), GFP_KERNEL);
	if (!promotions)
		return -ENOMEM;
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
