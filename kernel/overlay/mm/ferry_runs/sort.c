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
 * @counts:	counts the base pages that stay in @from, by their cause
 *
 * Context: any; the caller owns both lists.
 */
void ferry_sort_runs(struct list_head *from, struct list_head *sorted,
		     unsigned int *counts)
{
	struct ferry_bin bins[FERRY_BINS] __uninitialized, *bin = NULL;
	struct folio *folio, *next;
	unsigned int i, nr = 0;

	list_for_each_entry_safe(folio, next, from, lru) {
		if (folio_test_large(folio))
			continue;
		if (folio_test_locked(folio) || folio_test_writeback(folio)) {
			counts[FERRY_RUN_BUSY]++;
			continue;
		}
		if (!ferry_run_eligible(folio)) {
			counts[FERRY_RUN_UNSUPPORTED]++;
			continue;
		}
		bin = ferry_find_bin(bins, bin, &nr, folio, sorted);
		list_move_tail(&folio->lru, &bin->folios);
	}
	for (i = 0; i < min(nr, FERRY_BINS); i++)
		list_splice_tail(&bins[i].folios, sorted);
}
