// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Mapping of runs
 *
 * One walk of the reverse mapping replaces the migration entries of a run by
 * PTEs that map the destinations. Whatever fork(), mremap(), mprotect() or
 * munmap() made of the entries since the folios were unmapped, the walk finds
 * the entries where they are now, as remove_migration_ptes() does.
 *
 * Locking: see mm/ferry_runs/walk.c.
 */

#include <linux/leafops.h>
#include <linux/mm.h>
#include <linux/rmap.h>
#include <linux/swap.h>

#include "internal.h"

/* Map @dst where an entry for @src is; return whether it was not mapped yet */
static __always_inline bool ferry_map_pte(struct folio *src, struct folio *dst,
					  struct vm_area_struct *vma,
					  unsigned long address, pte_t *ptep)
{
	pte_t pte, old_pte = ptep_get(ptep);
	bool first = false;
	softleaf_t entry;
	rmap_t flags;

	if (pte_none(old_pte) || pte_present(old_pte))
		return false;
	entry = softleaf_from_pte(old_pte);
	if (!softleaf_is_migration(entry) ||
	    softleaf_to_pfn(entry) != folio_pfn(src))
		return false;

	folio_ref_inc(dst);
	pte = make_migrated_pte(dst, &dst->page, vma, old_pte, entry);
	flags = migrated_rmap_flags(dst, entry);
	if (unlikely(READ_ONCE(vma->vm_flags) & VM_LOCKED)) {
		if (folio_test_anon(dst))
			folio_add_anon_rmap_pte(dst, &dst->page, vma, address,
						flags);
		else
			folio_add_file_rmap_pte(dst, &dst->page, vma);
	} else {
		/* The same, with the statistics left to the caller */
		__folio_rmap_sanity_checks(dst, &dst->page, 1,
					   PGTABLE_LEVEL_PTE);
		first = atomic_inc_and_test(&dst->_mapcount);
		if (flags & RMAP_EXCLUSIVE)
			SetPageAnonExclusive(&dst->page);
	}
	set_pte_at(vma->vm_mm, address, ptep, pte);
	if (unlikely(READ_ONCE(vma->vm_flags) & VM_LOCKED))
		mlock_drain_local();
	trace_remove_migration_pte(address, pte_val(pte), 0);
	/* No need to invalidate - it was non-present before */
	update_mmu_cache(vma, address, ptep);
	return first;
}

/* Map the folios of a run in one VMA. */
static void ferry_map_vma(struct ferry_run *run, struct vm_area_struct *vma,
			  unsigned long base, pgoff_t first, pgoff_t last)
{
	int item = run->anon_vma ? NR_ANON_MAPPED : NR_FILE_MAPPED;
	struct folio *counted = run->dst[0];
	struct mm_struct *mm = vma->vm_mm;
	struct ferry_table table = {};
	unsigned int i;
	int mapped = 0;

	for (i = 0; i < run->nr; i++) {
		struct folio *src = run->src[i], *dst = run->dst[i];
		unsigned long address = base + (dst->index << PAGE_SHIFT);
		pte_t *ptep;

		if (dst->index < first || dst->index > last)
			continue;
		ptep = ferry_table_pte(&table, mm, address);
		if (!ptep || !ferry_map_pte(src, dst, vma, address, ptep))
			continue;
		/* The folios have one memory cgroup, but perhaps two nodes. */
		if (likely(folio_nid(dst) == folio_nid(counted)))
			mapped++;
		else
			lruvec_stat_mod_folio(dst, item, 1);
	}
	ferry_table_leave(&table);
	if (mapped)
		lruvec_stat_mod_folio(counted, item, mapped);
}

/**
 * ferry_map_run() - map the destinations of a run where the sources were
 * @run: the run; its folios locked, the sources moved to the destinations
 *
 * Context: process context. May sleep.
 */
void ferry_map_run(struct ferry_run *run)
{
	ferry_walk_run(run, ferry_map_vma);
}
