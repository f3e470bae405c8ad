/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MM_FERRY_ISOLATE_H
#define _MM_FERRY_ISOLATE_H

/**
 * DOC: Statistics of isolated folios
 *
 * Compaction takes folios off an LRU list one by one, and for each it updates
 * the size of the list in the node, the zone and the memory cgroup, and the
 * number of isolated pages. Where it collects long lists it isolates many base
 * pages of one LRU list while it holds the lock of the lruvec. Then it adds
 * them up, and updates the statistics once before it unlocks.
 *
 * The sizes of a lruvec only change under its lock, so no task that holds it
 * finds pages that are off the list and in its size. Tasks that read without it
 * find sizes that are too large, and a number of isolated pages that is too
 * small, by the pages that were isolated since the lock was taken: at most 32,
 * because compaction drops the lock every 32 PFNs.
 *
 * Other folios, and all with multi-generational LRU, are counted one by one.
 *
 * Locking: the lruvec lock, from the first folio until they are counted.
 */

#include <linux/mm_inline.h>
#include <linux/mmzone.h>
#include <linux/vmstat.h>

/**
 * struct ferry_isolated - folios that were isolated and are not counted yet
 * @later:	folios are counted later; else at once
 * @lruvec:	their lruvec, locked
 * @lru:	their list
 * @zid:	their zone
 * @nr:		their number
 */
struct ferry_isolated {
	bool later;
	struct lruvec *lruvec;
	enum lru_list lru;
	enum zone_type zid;
	int nr;
};

/** ferry_count_isolated() - count them, before their lruvec is unlocked */
static inline void ferry_count_isolated(struct ferry_isolated *isolated)
{
	if (likely(!isolated->nr))
		return;
	update_lru_size(isolated->lruvec, isolated->lru, isolated->zid,
			-isolated->nr);
	mod_node_page_state(lruvec_pgdat(isolated->lruvec),
			    NR_ISOLATED_ANON + is_file_lru(isolated->lru),
			    isolated->nr);
	isolated->nr = 0;
}

/**
 * ferry_isolate_folio() - take a folio off its LRU list
 * @isolated:	those that are not counted yet
 * @lruvec:	the folio's lruvec, locked
 * @folio:	the folio; the caller has cleared its LRU flag
 *
 * Context: lruvec lock held.
 */
static inline void ferry_isolate_folio(struct ferry_isolated *isolated,
				       struct lruvec *lruvec,
				       struct folio *folio)
{
	enum lru_list lru = folio_lru_list(folio);

	if (likely(!isolated->later) || folio_test_large(folio) ||
	    lru == LRU_UNEVICTABLE || lru_gen_enabled() ||
	    lru_gen_switching()) {
		lruvec_del_folio(lruvec, folio);
		node_stat_mod_folio(folio, NR_ISOLATED_ANON +
					   folio_is_file_lru(folio),
				    folio_nr_pages(folio));
		return;
	}
	VM_WARN_ON_ONCE_FOLIO(!folio_matches_lruvec(folio, lruvec), folio);
	VM_WARN_ON_ONCE(isolated->nr && isolated->lruvec != lruvec);
	if (isolated->lru != lru)
		ferry_count_isolated(isolated);
	list_del(&folio->lru);
	isolated->lruvec = lruvec;
	isolated->lru = lru;
	isolated->zid = folio_zonenum(folio);
	isolated->nr++;
}

#endif /* _MM_FERRY_ISOLATE_H */
