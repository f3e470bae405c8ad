// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Unmapping of runs
 *
 * Migration of a batch has two hooks for runs. This is the first one:
 *
 *   1. ferry_sort_runs() brings the folios of each run together.
 *   2. The destinations of a run are allocated before the first source is
 *      locked, so nobody waits for an allocation.
 *   3. The sources are locked, if that needs no waiting, and what the first
 *      step read without a lock is checked again.
 *   4. One walk of the reverse mapping replaces the PTEs of all sources by
 *      migration entries.
 *   5. A source that is still mapped gets its PTEs back and is left to the code
 *      for single folios. The others are handed over to the batch.
 *
 * Then a folio of a run is in the same state as one that migrate_folio_unmap()
 * has unmapped. The batch flushes the TLBs and copies without distinction, and
 * mm/ferry_runs/move.c is the second hook. Whatever it does not move, the code
 * for single folios moves or undoes.
 *
 * TLB flushes: a PTE is cleared without a flush, and the flush of all that were
 * cleared is done, or added to the flush of the batch, before their page table
 * is unlocked. flush_tlb_batched_pending() relies on that. PTEs that no TLB may
 * hold, such as those that NUMA balancing or userfaultfd have made
 * inaccessible, do not count: neither do they cause a flush, nor do they hide
 * that others need one.
 *
 * mm/migrc decides on the PTEs of one folio after the other, and a walk of a
 * run visits the folios alternately. Until a folio is handed over, the
 * migrate_info of its destination keeps the state of that decision.
 *
 * Concurrency: until its PTE is replaced a folio is mapped as ever. fork() and
 * mremap() take the lock of the reverse mapping, or find a migration entry and
 * copy or move that. mprotect() changes a migration entry under the lock of the
 * page table. khugepaged, KSM, swap-out and memory failure need the folio lock.
 * GUP-fast takes its reference before it checks the PTE again, and pins only
 * what folio_try_share_anon_rmap_pte() then finds pinned; other references show
 * in the count that the move checks. mlock() marks the folio, or finds the
 * migration entry and waits.
 *
 * Locking: see mm/ferry_runs/walk.c.
 */

#include <linux/buffer_head.h>
#include <linux/migrate.h>
#include <linux/migrc.h>
#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/mmu_notifier.h>
#include <linux/rmap.h>
#include <linux/sched.h>

#include "internal.h"

/**
 * struct ferry_cleared - PTEs of one page table that were cleared, not flushed
 * @pte:	the value of one of them before, dirty if any was
 * @start:	least address, ULONG_MAX if there is none
 * @end:	greatest address and a page, 0 if there is none
 */
struct ferry_cleared {
	pte_t pte;
	unsigned long start;
	unsigned long end;
};

static const struct ferry_cleared ferry_none_cleared = { .start = ULONG_MAX };

static inline void ferry_add_cleared(struct ferry_cleared *cleared,
				     struct mm_struct *mm,
				     unsigned long address, pte_t pte)
{
	if (!pte_accessible(mm, pte))
		return;
	if (!cleared->end || pte_dirty(pte))
		cleared->pte = pte;
	cleared->start = min(cleared->start, address);
	cleared->end = max(cleared->end, address + PAGE_SIZE);
}

/* Leave a page table when what was cleared in it is flushed, or will be. */
static void ferry_leave_cleared(struct ferry_table *table,
				struct vm_area_struct *vma,
				struct ferry_cleared *cleared)
{
	if (cleared->end)
		flush_cleared_ptes(vma, cleared->pte, cleared->start,
				   cleared->end);
	*cleared = ferry_none_cleared;
	ferry_table_leave(table);
}

/* Clear a present PTE, as try_to_migrate_one() does for a single folio. */
static __always_inline pte_t ferry_clear_pte(struct folio *src,
					     struct folio *dst,
					     struct vm_area_struct *vma,
					     unsigned long address, pte_t *ptep,
					     struct ferry_cleared *cleared)
{
	struct mm_struct *mm = vma->vm_mm;
	pte_t pte = ptep_get(ptep);
	bool defer;

	flush_cache_page(vma, address, folio_pfn(src));
	migrc_folio_resume(dst);
	defer = migrc_try_defer_pte(src, vma, TTU_DEFER_FLUSH, pte);
	pte = ptep_get_and_clear(mm, address, ptep);
	if (defer)
		migrc_defer_pte(mm, address, pte);
	else
		ferry_add_cleared(cleared, mm, address, pte);
	migrc_folio_suspend(dst);
	/* An anonymous folio that is dirty needs no more than that. */
	if (pte_dirty(pte) && !(folio_test_anon(src) && folio_test_dirty(src)))
		folio_mark_dirty(src);
	return pte;
}

/* Replace a PTE that maps @src, and count it if it was the last one. */
static __always_inline void ferry_unmap_pte(struct folio *src,
					    struct folio *dst,
					    struct vm_area_struct *vma,
					    unsigned long address, pte_t *ptep,
					    struct ferry_cleared *cleared,
					    int *unmapped)
{
	bool exclusive = folio_test_anon(src) && PageAnonExclusive(&src->page);
	pte_t pte = ferry_clear_pte(src, dst, vma, address, ptep, cleared);

	VM_WARN_ON_FOLIO(pte_write(pte) && folio_test_anon(src) && !exclusive,
			 src);
	if (!set_migration_pte(src, &src->page, vma, address, ptep, pte,
			       pte_write(pte), exclusive, 0))
		return;
	/* folio_remove_rmap_pte(), with the statistics left to the caller */
	__folio_rmap_sanity_checks(src, &src->page, 1, PGTABLE_LEVEL_PTE);
	*unmapped += atomic_add_negative(-1, &src->_mapcount);
	folio_ref_dec(src);
}

/* Unmap the folios of a run from one VMA. */
static void ferry_unmap_vma(struct ferry_run *run, struct vm_area_struct *vma,
			    unsigned long base, pgoff_t first, pgoff_t last)
{
	struct ferry_cleared cleared = ferry_none_cleared;
	struct mm_struct *mm = vma->vm_mm;
	struct mmu_notifier_range range;
	struct ferry_table table = {};
	int unmapped = 0;
	unsigned int i;

	/*
	 * Migration would not find its entries while exec() moves this stack,
	 * and the mlock count of a folio is not kept here. Folios that are
	 * mapped by such a VMA are left to the code for single folios.
	 */
	if (vma_is_temporary_stack(vma) || (vma->vm_flags & VM_LOCKED))
		return;
	mmu_notifier_range_init(&range, MMU_NOTIFY_CLEAR, 0, mm,
				base + (first << PAGE_SHIFT),
				base + ((last + 1) << PAGE_SHIFT));
	mmu_notifier_invalidate_range_start(&range);
	/* Update high watermark before we lower rss */
	update_hiwater_rss(mm);
	for (i = 0; i < run->nr; i++) {
		struct folio *src = run->src[i];
		unsigned long address = base + (src->index << PAGE_SHIFT);
		pte_t *ptep, pte;

		if (src->index < first || src->index > last)
			continue;
		if (table.start && (address & PMD_MASK) != table.base)
			ferry_leave_cleared(&table, vma, &cleared);
		ptep = ferry_table_pte(&table, mm, address);
		if (!ptep)
			continue;
		pte = ptep_get(ptep);
		if (!pte_present(pte) || pte_pfn(pte) != folio_pfn(src))
			continue;
		ferry_unmap_pte(src, run->dst[i], vma, address, ptep, &cleared,
				&unmapped);
	}
	ferry_leave_cleared(&table, vma, &cleared);
	if (unmapped)
		lruvec_stat_mod_folio(run->src[0], run->anon_vma ?
				      NR_ANON_MAPPED : NR_FILE_MAPPED,
				      -unmapped);
	mmu_notifier_invalidate_range_end(&range);
}

/* What the hook for unmapping was given, and what it counts. */
struct ferry_unmap {
	struct list_head *from;
	struct list_head *unmap_folios;
	struct list_head *dst_folios;
	new_folio_t *get_new_folio;
	free_folio_t *put_new_folio;
	unsigned long private;
	struct migrc_batch *migrc;
	unsigned int counts[FERRY_RUN_NR_STATS];
};

static void ferry_put_target(struct ferry_unmap *unmap, struct folio *dst)
{
	if (unmap->put_new_folio)
		unmap->put_new_folio(dst, unmap->private);
	else
		folio_put(dst);
}

/* Leave a source to the code for single folios. */
static void ferry_leave_source(struct ferry_unmap *unmap, struct folio *src,
			       enum ferry_run_stat cause)
{
	list_move_tail(&src->lru, unmap->from);
	unmap->counts[cause]++;
}

/* alloc_migration_target() for sources of one zone, at once if possible. */
static unsigned int ferry_alloc_bulk(struct ferry_run *run,
				     const struct migration_target_control *mtc)
{
	struct page **pages = (struct page **)run->dst;
	struct folio *src = run->src[0];
	int nid = mtc->nid == NUMA_NO_NODE ? folio_nid(src) : mtc->nid;
	gfp_t gfp = mtc->gfp_mask;

	if (folio_zonenum(src) == ZONE_MOVABLE)
		gfp |= __GFP_HIGHMEM;
	memset(pages, 0, run->nr * sizeof(*pages));
	/* The folio of a base page has the address of its page. */
	BUILD_BUG_ON(offsetof(struct folio, page));
	return __alloc_pages_bulk(gfp, nid, mtc->nmask, run->nr, pages);
}

/*
 * Allocate a destination for each source. The bulk allocation gives up early,
 * for example below the low watermark; the caller's own function does the rest.
 */
static bool ferry_alloc_targets(struct ferry_unmap *unmap,
				struct ferry_run *run)
{
	unsigned int i, nr = 0;

	if (unmap->get_new_folio == alloc_migration_target)
		nr = ferry_alloc_bulk(run, (void *)unmap->private);
	for (; nr < run->nr; nr++) {
		run->dst[nr] = unmap->get_new_folio(run->src[nr],
						    unmap->private);
		if (!run->dst[nr])
			break;
	}
	for (i = nr; i < run->nr; i++)
		ferry_leave_source(unmap, run->src[i], FERRY_RUN_NO_MEMORY);
	run->nr = nr;
	return nr;
}

/* Check under the folio lock what was read without it. */
static bool ferry_lock_source(struct folio *src, struct folio *first)
{
	if (!folio_trylock(src))
		return false;
	if (likely(ferry_run_eligible(src) &&
		   (src == first || ferry_same_run(src, first)) &&
		   folio_ref_count(src) > 1 &&
		   (folio_mapped(src) || !folio_test_anon(src))))
		return true;
	folio_unlock(src);
	return false;
}

/*
 * These callbacks check, copy, freeze and switch. With MIGRATE_ASYNC they wait
 * for nothing, not even for the locks of buffers.
 */
static bool ferry_mapping_supported(struct address_space *mapping)
{
	const struct address_space_operations *a_ops = mapping->a_ops;

	if (mapping_inaccessible(mapping))
		return false;
	if (IS_ENABLED(CONFIG_BUFFER_HEAD) &&
	    (a_ops->migrate_folio == buffer_migrate_folio ||
	     a_ops->migrate_folio == buffer_migrate_folio_norefs))
		return true;
	return a_ops->migrate_folio == migrate_folio ||
	       a_ops->migrate_folio == filemap_migrate_folio;
}

/*
 * Lock the sources of a run. Drop those that are not part of it any more, each
 * with its destination. Return whether any is left.
 */
static bool ferry_lock_run(struct ferry_unmap *unmap, struct ferry_run *run)
{
	struct folio *first = NULL;
	unsigned int i, nr = 0;

	for (i = 0; i < run->nr; i++) {
		struct folio *src = run->src[i], *dst = run->dst[i];

		if (!ferry_lock_source(src, first ?: src)) {
			ferry_leave_source(unmap, src, FERRY_RUN_BUSY);
			ferry_put_target(unmap, dst);
			continue;
		}
		if (!first) {
			first = src;
			run->mapping = src->mapping;
			run->first = src->index;
			run->last = src->index;
		}
		run->first = min(run->first, src->index);
		run->last = max(run->last, src->index);
		dst->migrate_info = 0;
		run->src[nr] = src;
		run->dst[nr++] = dst;
	}
	run->nr = nr;
	return nr;
}

/* Take folios of one run from the sorted list. */
static void ferry_take_run(struct ferry_run *run, struct list_head *sorted)
{
	struct folio *first = list_first_entry(sorted, struct folio, lru);
	struct folio *folio;

	run->anon_vma = NULL;
	run->nr = 0;
	list_for_each_entry(folio, sorted, lru) {
		if (run->nr == FERRY_RUN_FOLIOS ||
		    (run->nr && !ferry_same_run(first, folio)))
			break;
		run->src[run->nr++] = folio;
	}
}

static void ferry_undo_run(struct ferry_unmap *unmap, struct ferry_run *run,
			   enum ferry_run_stat cause)
{
	unsigned int i;

	for (i = 0; i < run->nr; i++) {
		folio_unlock(run->src[i]);
		ferry_leave_source(unmap, run->src[i], cause);
		ferry_put_target(unmap, run->dst[i]);
	}
}

/*
 * Hand an unmapped folio over to the batch, with a reference to its anon_vma.
 * Return false if it is still mapped; then it has its PTEs back.
 */
static bool ferry_hand_over(struct ferry_unmap *unmap, struct ferry_run *run,
			    struct folio *src, struct folio *dst,
			    bool was_mapped)
{
	unsigned long state = was_mapped ? FOLIO_WAS_MAPPED : 0;

	migrc_folio_resume(dst);
	dst->migrate_info = 0;
	/* A speculative reference may have locked a new folio. */
	if (likely(!folio_mapped(src) && folio_trylock(dst))) {
		state |= migrc_folio_unmapped(unmap->migrc, src, was_mapped);
		__migrate_folio_record(dst, state, run->anon_vma);
		list_move_tail(&src->lru, unmap->unmap_folios);
		list_add_tail(&dst->lru, unmap->dst_folios);
		return true;
	}
	migrc_folio_not_migrated(unmap->migrc);
	remove_migration_ptes(src, src, 0);
	folio_unlock(src);
	ferry_leave_source(unmap, src, FERRY_RUN_MAPPED);
	ferry_put_target(unmap, dst);
	return false;
}

/* Unmap the locked folios of a run, and hand them over. */
static void ferry_unmap_run(struct ferry_unmap *unmap, struct ferry_run *run)
{
	DECLARE_BITMAP(was_mapped, FERRY_RUN_FOLIOS);
	unsigned int i, nr = 0;

	bitmap_zero(was_mapped, FERRY_RUN_FOLIOS);
	for (i = 0; i < run->nr; i++)
		if (folio_mapped(run->src[i]))
			__set_bit(i, was_mapped);
	if (!bitmap_empty(was_mapped, FERRY_RUN_FOLIOS))
		ferry_walk_run(run, ferry_unmap_vma);
	for (i = 0; i < run->nr; i++)
		nr += ferry_hand_over(unmap, run, run->src[i], run->dst[i],
				      test_bit(i, was_mapped));
	if (!run->anon_vma)
		return;
	/* The run had one reference, and each folio of the batch has its own */
	if (nr)
		atomic_add(nr - 1, &run->anon_vma->refcount);
	else
		put_anon_vma(run->anon_vma);
}

/* Find what the folios of a locked run are mapped by. */
static bool ferry_get_mapping(struct ferry_run *run)
{
	if (!folio_test_anon(run->src[0]))
		return ferry_mapping_supported(run->mapping);
	run->anon_vma = folio_get_anon_vma(run->src[0]);
	return run->anon_vma;
}

/* See ferry_unmap_runs(). */
void __ferry_unmap_runs(struct list_head *from, struct list_head *unmap_folios,
			struct list_head *dst_folios, new_folio_t get_new_folio,
			free_folio_t put_new_folio, unsigned long private,
			struct migrc_batch *migrc)
{
	struct ferry_unmap unmap = {
		.from = from,
		.unmap_folios = unmap_folios,
		.dst_folios = dst_folios,
		.get_new_folio = get_new_folio,
		.put_new_folio = put_new_folio,
		.private = private,
		.migrc = migrc,
	};
	struct ferry_run run __uninitialized;	/* 1 KiB a batch */
	LIST_HEAD(sorted);

	unmap.counts[FERRY_RUN_UNSUPPORTED] = ferry_sort_runs(from, &sorted);
	while (!list_empty(&sorted)) {
		cond_resched();
		ferry_take_run(&run, &sorted);
		if (!ferry_alloc_targets(&unmap, &run))
			break;
		if (!ferry_lock_run(&unmap, &run))
			continue;
		if (ferry_get_mapping(&run))
			ferry_unmap_run(&unmap, &run);
		else
			ferry_undo_run(&unmap, &run, FERRY_RUN_UNSUPPORTED);
	}
	list_splice_tail(&sorted, from);
	ferry_run_count(unmap.counts);
}
