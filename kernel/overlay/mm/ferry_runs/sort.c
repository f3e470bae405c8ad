// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Order of a batch
 *
 * The folios of a batch come in the order in which the caller of
 * migrate_pages() found them: of addresses, of PFNs, of the LRU list, or none.
 * ferry_sort_runs() brings those of each run together in one pass, by a few
 * bins. Sorting the whole list would cost more than it gains: folios that come
 * in order stay in one bin, and random ones of a few MiB fill a few bins.
 *
 * No folio is locked here, so a folio may change at any time. The caller checks
 * everything again when it has locked the folio. The list belongs to the
 * migrating task, and so does the LRU link of each folio in it.
 *
 * Locking: none.
 */

#include <linux/list.h>
#include <linux/mm.h>
#include <linux/page-flags.h>

#include "internal.h"

/* Windows that are open at once: random folios of 32 MiB. */
#define FERRY_BINS	16

/**
 * struct ferry_bin - folios of one run, as far as it was found
 * @first:	one of them
 * @folios:	all
 */
struct ferry_bin {
	struct folio *first;
	struct list_head folios;
};

/*
 * Large folios gain nothing. The others stay with the code for single folios
 * because it waits for them, because it does something else with them, or
 * because they are rare.
 */
#define FERRY_RUN_REFUSED (BIT(PG_head) | BIT(PG_writeback) |		\
			   BIT(PG_mlocked) | BIT(PG_unevictable) |	\
			   BIT(PG_reserved) | __PG_HWPOISON)

/**
 * ferry_run_eligible() - check that a folio may be part of a run
 * @folio: the folio, isolated by the caller
 *
 * Context: any.
 * Return: true if it may; stable only while the folio is locked.
 */
bool ferry_run_eligible(struct folio *folio)
{
	unsigned long mapping = (unsigned long)READ_ONCE(folio->mapping);

	if (READ_ONCE(folio->flags.f) & FERRY_RUN_REFUSED)
		return false;
	/* KSM folios have a reverse mapping of their own. */
	if (!mapping || (mapping & FOLIO_MAPPING_FLAGS) == FOLIO_MAPPING_KSM)
		return false;
	return !page_has_type(&folio->page) && !folio_is_zone_device(folio);
}

/* The bin of a folio: the last one used, an open one, or the oldest, emptied */
static struct ferry_bin *ferry_find_bin(struct ferry_bin *bins,
					struct ferry_bin *bin, unsigned int *nr,
					struct folio *folio,
					struct list_head *sorted)
{
	unsigned int i, open = min(*nr, FERRY_BINS);

	if (likely(bin && ferry_same_run(bin->first, folio)))
		return bin;
	for (i = 0; i < open; i++)
		if (ferry_same_run(bins[i].first, folio))
			return &bins[i];
	bin = &bins[(*nr)++ % FERRY_BINS];
	if (open == FERRY_BINS)
		list_splice_tail(&bin->folios, sorted);
	INIT_LIST_HEAD(&bin->folios);
	bin->first = folio;
	return bin;
}

/**
 * ferry_sort_runs() - take the folios that may be in runs, each run together
 * @from:	the batch; keeps the other folios
 * @sorted:	receives those folios
 *
 * Context: any; the caller owns both lists.
 * Return: number of base pages that stay in @from.
 */
unsigned int ferry_sort_runs(struct list_head *from, struct list_head *sorted)
{
	struct ferry_bin bins[FERRY_BINS] __uninitialized, *bin = NULL;
	unsigned int i, nr = 0, left = 0;
	struct folio *folio, *next;

	list_for_each_entry_safe(folio, next, from, lru) {
		if (folio_test_locked(folio) || !ferry_run_eligible(folio)) {
			left += !folio_test_large(folio);
			continue;
		}
		bin = ferry_find_bin(bins, bin, &nr, folio, sorted);
		list_move_tail(&folio->lru, &bin->folios);
	}
	for (i = 0; i < min(nr, FERRY_BINS); i++)
		list_splice_tail(&bins[i].folios, sorted);
	return left;
}
