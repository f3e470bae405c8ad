// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Unmapping of runs
 *
 * One walk of the reverse mapping replaces the PTEs of all sources of a run by
 * migration entries.
 *
 * TLB flushes: a PTE is cleared without a flush, and the flush of all that were
 * cleared is done, or added to the flush of the batch, before their page table
 * is unlocked. flush_tlb_batched_pending() relies on that. PTEs that no TLB may
 * hold, such as those that NUMA balancing or userfaultfd have made
 * inaccessible, do not count: neither do they cause a flush, nor do they hide
 * that others need one. Whether one counts is decided once, when it is cleared:
 * pte_accessible() of a hinting PTE changes as soon as another thread ends its
 * mmu_gather, and the flush is for all PTEs of the range.
 *
 * mm/migrc decides on the PTEs of one folio after the other, and a walk of a
 * run visits the folios alternately. Until a folio is handed over, the
 * migrate_info of its destination keeps the state of that decision.
 *
 * Concurrency: until its PTE is replaced a folio is mapped as before. fork()
 * and mremap() take the lock of the reverse mapping, or find a migration entry
 * and copy or move that. mprotect() changes a migration entry under the lock of
 * the page table. khugepaged, KSM, swap-out and memory failure need the folio
 * lock. GUP-fast takes its reference before it checks the PTE again, and pins
 * only what folio_try_share_anon_rmap_pte() then finds pinned; other references
 * show in the count that the move checks. mlock() marks the folio, or finds the
 * migration entry and waits.
 *
 * Locking: see mm/ferry_runs/walk.c.
 */

#include <linux/migrc.h>
#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/mmu_notifier.h>
#include <linux/rmap.h>

#include "internal.h"

/**
 * struct ferry_cleared - PTEs of one page table that were cleared, not flushed
 * @start:	least address, ULONG_MAX if there is none
 * @end:	greatest address and a page, 0 if there is none
 * @dirty:	one of them was dirty
 */
struct ferry_cleared {
	unsigned long start;
	unsigned long end;
	bool dirty;
};

static const struct ferry_cleared ferry_none_cleared = { .start = ULONG_MAX };

static inline void ferry_add_cleared(struct ferry_cleared *cleared,
				     struct mm_struct *mm,
				     unsigned long address, pte_t pte)
{
	if (!pte_accessible(mm, pte))
		return;
	cleared->dirty |= pte_dirty(pte);
	cleared->start = min(cleared->start, address);
	cleared->end = max(cleared->end, address + PAGE_SIZE);
}

/* Leave a page table after the flush of its cleared PTEs, or its promise. */
static void ferry_leave_cleared(struct ferry_table *table,
				struct vm_area_struct *vma,
				struct ferry_cleared *cleared)
{
	if (cleared->end)
		flush_cleared_ptes(vma, cleared->dirty, cleared->start,
				   cleared->end);
	*cleared = ferry_none_cleared;
	ferry_table_leave(table);
}

/* folio_mark_dirty(), of which little is left for an anonymous folio */
static __always_inline void ferry_mark_dirty(struct folio *folio)
{
	if (!folio_test_anon(folio) || folio_test_swapcache(folio))
		folio_mark_dirty(folio);
	else if (!folio_test_dirty(folio))
		folio_set_dirty(folio);
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
		migrc_defer_pte(mm, address, ptep, pte);
	else
		ferry_add_cleared(cleared, mm, address, pte);
	migrc_folio_suspend(dst);
	if (pte_dirty(pte))
		ferry_mark_dirty(src);
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
	/*
	 * From the first folio to the last, at most a window. A KVM guest
	 * faults on the pages between, too, but its TLBs are flushed once.
	 */
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

/**
 * ferry_unmap_run() - replace the PTEs of the sources by migration entries
 * @run: the run, its sources locked
 *
 * A source that cannot be unmapped everywhere is still mapped afterwards.
 *
 * Context: process context. May sleep.
 */
void ferry_unmap_run(struct ferry_run *run)
{
	ferry_walk_run(run, ferry_unmap_vma);
}
