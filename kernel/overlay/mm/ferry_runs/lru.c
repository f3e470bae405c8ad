// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: LRU lists
 *
 * folio_isolate_lru() takes the lock of an LRU list for each folio, and so does
 * folio_add_lru() while a caller of migration has disabled the batches of the
 * CPUs by lru_cache_disable(). Runs take the lock once for up to 64 folios.
 *
 * With multi-generational LRU, lruvec_add_folio() and lruvec_del_folio() do it
 * all. So they do while it is switched off: lruvecs are drained one after the
 * other, and until then a folio may still be in a generation.
 *
 * Locking: folio locks -> lruvec lock, with interrupts off for one run.
 */

#include <linux/memcontrol.h>
#include <linux/mm_inline.h>
#include <trace/events/pagemap.h>

#include "internal.h"

/* Folios from the first on that are in the lruvec and zone of the first. */
static unsigned int ferry_lru_stretch(struct folio **folios, unsigned int nr)
{
	int zone = page_zone_id(&folios[0]->page);
	unsigned int end;

	for (end = 1; end < nr; end++)
		if (page_zone_id(&folios[end]->page) != zone ||
		    !ferry_same_memcg(folios[0], folios[end]))
			break;
	return end;
}

/* Folios may be in generations, or must be added to one. */
static bool ferry_lru_has_generations(void)
{
	return lru_gen_enabled() || lru_gen_switching();
}

static void ferry_lru_sizes(struct lruvec *lruvec, enum zone_type zid,
			    const long *sizes)
{
	enum lru_list lru;

	for_each_lru(lru)
		if (sizes[lru])
			update_lru_size(lruvec, lru, zid, sizes[lru]);
}

/* Add folios of one lruvec and zone, under the lruvec's lock. */
static void ferry_lruvec_add(struct lruvec *lruvec, struct folio **folios,
			     unsigned int nr)
{
	long sizes[NR_LRU_LISTS] = {};
	unsigned int i;
	enum lru_list lru;

	for (i = 0; i < nr; i++) {
		struct folio *folio = folios[i];

		VM_WARN_ON_ONCE_FOLIO(folio_test_lru(folio), folio);
		lru = folio_lru_list(folio);
		if (ferry_lru_has_generations()) {
			lruvec_add_folio(lruvec, folio);
		} else {
			/* The same, with the sizes left until the end */
			list_add(&folio->lru, &lruvec->lists[lru]);
			sizes[lru]++;
		}
		trace_mm_lru_insertion(folio);
		folio_set_lru(folio);
	}
	ferry_lru_sizes(lruvec, folio_zonenum(folios[0]), sizes);
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
	struct lruvec *lruvec;
	unsigned long flags;
	unsigned int i, n;

	for (i = 0; i < nr; i += n) {
		n = ferry_lru_stretch(folios + i, nr - i);
		lruvec = folio_lruvec_lock_irqsave(folios[i], &flags);
		ferry_lruvec_add(lruvec, folios + i, n);
		lruvec_unlock_irqrestore(lruvec, flags);
	}
}

/* Remove folios of one lruvec and zone, under the lruvec's lock. */
static void ferry_lruvec_del(struct lruvec *lruvec, struct folio **folios,
			     unsigned int nr)
{
	long sizes[NR_LRU_LISTS] = {};
	unsigned int i;

	for (i = 0; i < nr; i++) {
		enum lru_list lru = folio_lru_list(folios[i]);

		if (ferry_lru_has_generations()) {
			lruvec_del_folio(lruvec, folios[i]);
			continue;
		}
		/* The same, with the sizes left until the end */
		if (lru != LRU_UNEVICTABLE)
			list_del(&folios[i]->lru);
		sizes[lru]--;
	}
	ferry_lru_sizes(lruvec, folio_zonenum(folios[0]), sizes);
}

/**
 * ferry_lru_isolate() - take folios off their LRU lists
 * @folios:	the folios; the caller has cleared their LRU flags
 * @nr:		their number
 * @list:	receives them at its end
 *
 * Context: process context; the caller has a reference to each folio.
 */
void ferry_lru_isolate(struct folio **folios, unsigned int nr,
		       struct list_head *list)
{
	struct lruvec *lruvec;
	unsigned int i, k, n;
	unsigned long flags;
	long file;

	for (i = 0; i < nr; i += n) {
		n = ferry_lru_stretch(folios + i, nr - i);
		lruvec = folio_lruvec_lock_irqsave(folios[i], &flags);
		ferry_lruvec_del(lruvec, folios + i, n);
		lruvec_unlock_irqrestore(lruvec, flags);
		for (k = i, file = 0; k < i + n; k++) {
			list_add_tail(&folios[k]->lru, list);
			file += folio_is_file_lru(folios[k]);
		}
		node_stat_mod_folio(folios[i], NR_ISOLATED_ANON, n - file);
		node_stat_mod_folio(folios[i], NR_ISOLATED_FILE, file);
	}
}
