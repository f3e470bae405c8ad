// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: LRU lists
 *
 * folio_add_lru() collects folios and adds them to the LRU lists under one
 * lock, unless a caller of migration has disabled that by lru_cache_disable();
 * then it takes the lock for each folio. A run takes the lock once.
 *
 * Locking: folio locks -> lruvec lock, with interrupts off for one run.
 */

#include <linux/memcontrol.h>
#include <linux/mm_inline.h>
#include <trace/events/pagemap.h>

#include "internal.h"

/* Add folios of one lruvec and zone, under the lruvec's lock. */
static void ferry_lruvec_add(struct lruvec *lruvec, struct folio **folios,
			     unsigned int nr)
{
	enum zone_type zid = folio_zonenum(folios[0]);
	long sizes[NR_LRU_LISTS] = {};
	unsigned int i;
	enum lru_list lru;

	for (i = 0; i < nr; i++) {
		struct folio *folio = folios[i];

		VM_WARN_ON_ONCE_FOLIO(folio_test_lru(folio), folio);
		VM_WARN_ON_ONCE_FOLIO(!folio_matches_lruvec(folio, lruvec),
				      folio);
		lru = folio_lru_list(folio);
		if (lru_gen_enabled()) {
			lruvec_add_folio(lruvec, folio);
		} else {
			/* The same, with the sizes left until the end */
			list_add(&folio->lru, &lruvec->lists[lru]);
			sizes[lru]++;
		}
		trace_mm_lru_insertion(folio);
		folio_set_lru(folio);
	}
	for_each_lru(lru)
		if (sizes[lru])
			update_lru_size(lruvec, lru, zid, sizes[lru]);
}

/**
 * ferry_lru_add() - add the folios of a run to their LRU lists
 * @folios:	the folios: locked, evictable, on no list, of one memory cgroup
 * @nr:		their number
 *
 * If one of them becomes unevictable now, reclaim moves it to the right list,
 * as it does with any folio that is on a list by then.
 *
 * Context: process context; the caller has a reference to each folio.
 */
void ferry_lru_add(struct folio **folios, unsigned int nr)
{
	unsigned int i, end;
	struct lruvec *lruvec;
	unsigned long flags;

	for (i = 0; i < nr; i = end) {
		int zone = page_zone_id(&folios[i]->page);

		for (end = i + 1; end < nr; end++)
			if (page_zone_id(&folios[end]->page) != zone)
				break;
		lruvec = folio_lruvec_lock_irqsave(folios[i], &flags);
		ferry_lruvec_add(lruvec, folios + i, end - i);
		lruvec_unlock_irqrestore(lruvec, flags);
	}
}
