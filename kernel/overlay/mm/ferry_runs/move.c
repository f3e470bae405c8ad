// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Move of runs
 *
 * Unmapped folios, whose TLB entries are flushed, are moved in runs:
 *
 *   1. The folios of a run are next to each other in the list. Each one is
 *      moved as move_to_new_folio() moves any folio. A folio that does not move
 *      stays in the list as it was, and the code for single folios tries again.
 *   2. The destinations are added to the LRU lists under one lock, before they
 *      are mapped, so that whatever is mapped is on a list.
 *   3. One walk of the reverse mapping maps them.
 *   4. Destinations are unlocked, and sources freed as one batch.
 *
 * mm/ferry_runs/batch.c calls this for its own runs. The second hook calls it
 * after the copy phase of a migrator, for all folios of the batch.
 *
 * Locking: see mm/ferry_runs/walk.c and lru.c.
 */

#include <linux/folio_batch.h>
#include <linux/migrate.h>
#include <linux/migrc.h>
#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/page_owner.h>
#include <linux/rmap.h>
#include <linux/sched.h>

#include "internal.h"

/* The anon_vma of an unmapped folio, whose state stays recorded. */
static struct anon_vma *ferry_anon_vma(const struct folio *dst)
{
	return (struct anon_vma *)(dst->migrate_info & ~FOLIO_OLD_STATES);
}

static bool ferry_may_move(struct folio *src, struct folio *dst)
{
	return ferry_run_eligible(src) &&
	       !(dst->migrate_info & FOLIO_WAS_MLOCKED) &&
	       (!folio_test_anon(src) || ferry_anon_vma(dst));
}

/**
 * struct ferry_move - a run that is being moved
 * @run:	the run
 * @states:	low bits of the migrate_info of each destination
 * @mapped:	at least one folio was mapped
 */
struct ferry_move {
	struct ferry_run run;
	u8 states[FERRY_RUN_FOLIOS];
	bool mapped;
};

/*
 * Take a run from *srcp and *dstp on off both lists. Leave both at the first
 * pair that does not belong to it.
 */
static void ferry_cut_run(struct ferry_run *run, struct list_head *unmap_folios,
			  struct folio **srcp, struct folio **dstp)
{
	struct folio *src = *srcp, *dst = *dstp, *first = src;
	LIST_HEAD(cut);

	run->mapping = first->mapping;
	run->anon_vma = ferry_anon_vma(dst);
	run->nr = 0;
	do {
		run->src[run->nr] = src;
		run->dst[run->nr++] = dst;
		src = list_next_entry(src, lru);
		dst = list_next_entry(dst, lru);
	} while (!list_entry_is_head(src, unmap_folios, lru) &&
		 run->nr < FERRY_RUN_FOLIOS && ferry_may_move(src, dst) &&
		 ferry_same_run(first, src));
	/* Nothing uses the links until the folios are put on other lists. */
	list_bulk_move_tail(&cut, &first->lru, src->lru.prev);
	list_bulk_move_tail(&cut, &(*dstp)->lru, dst->lru.prev);
	*srcp = src;
	*dstp = dst;
}

/*
 * Move a folio. An anonymous one that is in no cache has one reference left and
 * no callback: move_to_new_folio() would find the same after several calls.
 */
static bool ferry_move_folio(struct folio *dst, struct folio *src, bool copied)
{
	if (!folio_test_anon(src) || folio_test_swapcache(src))
		return !move_to_new_folio(dst, src, MIGRATE_ASYNC, copied);
	if (folio_ref_count(src) != 1 || (!copied && folio_mc_copy(dst, src)))
		return false;
	migrate_uncached_folio(dst, src);
	folio_migrate_flags(dst, src);
	flush_dcache_folio(dst);
	return true;
}

/*
 * Move the folios of a run, and keep those in it that were moved. Put the
 * others back on their lists, as they were, and return their number.
 */
static unsigned int ferry_move_run(struct ferry_move *move,
				   struct folio *next_src,
				   struct folio *next_dst)
{
	struct ferry_run *run = &move->run;
	unsigned int i, nr = 0, found = run->nr;

	run->first = ULONG_MAX;
	run->last = 0;
	move->mapped = false;
	for (i = 0; i < found; i++) {
		struct folio *src = run->src[i], *dst = run->dst[i];
		struct anon_vma *anon_vma;
		int state;

		cond_resched();
		__migrate_folio_extract(dst, &state, &anon_vma);
		if (!ferry_move_folio(dst, src, state & FOLIO_COPIED)) {
			/*
			 * The source may change before the next copy. If it is
			 * poisoned, that copy takes a machine check again, as
			 * the second try of MIGRATE_SYNC does without runs. It
			 * recovers from each, and memory_failure() counts a
			 * page once.
			 */
			__migrate_folio_record(dst, state & ~FOLIO_COPIED,
					       anon_vma);
			list_add_tail(&src->lru, &next_src->lru);
			list_add_tail(&dst->lru, &next_dst->lru);
			continue;
		}
		run->first = min(run->first, dst->index);
		run->last = max(run->last, dst->index);
		move->mapped |= state & FOLIO_WAS_MAPPED;
		move->states[nr] = state;
		run->src[nr] = src;
		run->dst[nr++] = dst;
	}
	run->nr = nr;
	return found - nr;
}

/* Release the folios of a run that was moved, and free its sources. */
static void ferry_release_run(struct ferry_move *move,
			      enum migrate_reason reason)
{
	struct ferry_run *run = &move->run;
	struct pglist_data *pgdat = folio_pgdat(run->src[0]);
	struct folio_batch free;
	long file = 0;
	unsigned int i;

	folio_batch_init(&free);
	for (i = 0; i < run->nr; i++) {
		struct folio *src = run->src[i], *dst = run->dst[i];

		folio_unlock(dst);
		folio_set_owner_migrate_reason(dst, reason);
		folio_put(dst);
		folio_unlock(src);
		file += folio_is_file_lru(src);
		if (migrc_quarantine_folio(src, move->states[i]))
			continue;
		/* Memory failure keeps its source. */
		if (reason == MR_MEMORY_FAILURE) {
			INIT_LIST_HEAD(&src->lru);
			continue;
		}
		if (!folio_batch_add(&free, src))
			folios_put(&free);
	}
	if (folio_batch_count(&free))
		folios_put(&free);
	if (reason != MR_DEMOTION) {
		mod_node_page_state(pgdat, NR_ISOLATED_ANON, file - run->nr);
		mod_node_page_state(pgdat, NR_ISOLATED_FILE, -file);
	}
	if (run->anon_vma &&
	    atomic_sub_and_test(run->nr, &run->anon_vma->refcount))
		__put_anon_vma(run->anon_vma);
}

/* See ferry_move_runs(). */
unsigned int __ferry_move_runs(struct list_head *unmap_folios,
			       struct list_head *dst_folios,
			       enum migrate_reason reason)
{
	struct folio *src = list_first_entry(unmap_folios, struct folio, lru);
	struct folio *dst = list_first_entry(dst_folios, struct folio, lru);
	unsigned int counts[FERRY_RUN_NR_STATS] = {};
	struct ferry_move move __uninitialized; /* 1 KiB a batch */

	while (!list_entry_is_head(src, unmap_folios, lru)) {
		if (!ferry_may_move(src, dst)) {
			src = list_next_entry(src, lru);
			dst = list_next_entry(dst, lru);
			continue;
		}
		ferry_cut_run(&move.run, unmap_folios, &src, &dst);
		counts[FERRY_RUN_PINNED] += ferry_move_run(&move, src, dst);
		if (!move.run.nr)
			continue;
		counts[FERRY_RUN_MOVED] += move.run.nr;
		ferry_lru_add(move.run.dst, move.run.nr);
		if (move.mapped)
			ferry_map_run(&move.run);
		ferry_release_run(&move, reason);
	}
	ferry_run_count(counts);
	return counts[FERRY_RUN_MOVED];
}
