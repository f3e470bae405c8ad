// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Walk of the reverse mapping of a run
 *
 * rmap_walk() visits, for one folio, every VMA that may map it. Here the two
 * loops are exchanged: the walk visits every VMA that may map a folio of the
 * run, and in each VMA the PTEs of all folios. The locks are the same, so is
 * what they exclude:
 *
 *   - The folio locks keep the folios in their file or anon_vma. An anonymous
 *     folio may get another anon_vma of the same root only while it is locked.
 *   - The lock of the anon_vma or of the file's mapping keeps the VMAs and the
 *     upper levels of their page tables in place. fork(), mremap() and the
 *     splitting of a VMA take it for writing where they would hide a PTE from
 *     the walk.
 *   - The lock of a page table keeps its PTEs. pte_offset_map_lock() fails if
 *     khugepaged has removed the table.
 *
 * Locking: folio locks -> lock of the anon_vma or i_mmap_rwsem -> page table
 * lock.
 */

#include <linux/mm.h>
#include <linux/rmap.h>
#include <linux/sched.h>

#include "internal.h"

/**
 * ferry_table_enter() - lock the page table of an address
 * @table:	the table of the walk, which is left
 * @mm:		the address space
 * @address:	the address
 *
 * Context: under the lock of the reverse mapping.
 * Return: true, with the table locked; false if there is none.
 */
bool ferry_table_enter(struct ferry_table *table, struct mm_struct *mm,
		       unsigned long address)
{
	pmd_t *pmd;

	ferry_table_leave(table);
	pmd = mm_find_pmd(mm, address);
	if (!pmd)
		return false;
	table->base = address & PMD_MASK;
	table->start = pte_offset_map_lock(mm, pmd, table->base, &table->ptl);
	return table->start;
}

/**
 * ferry_table_leave() - unlock the page table of a walk
 * @table: the table
 *
 * Context: as for ferry_table_enter().
 */
void ferry_table_leave(struct ferry_table *table)
{
	if (table->start)
		pte_unmap_unlock(table->start, table->ptl);
	table->start = NULL;
}

static void ferry_walk_vma(struct ferry_run *run, struct vm_area_struct *vma,
			   pgoff_t pgoff, ferry_walk_t one)
{
	cond_resched();
	one(run, vma, vma->vm_start - (pgoff << PAGE_SHIFT),
	    max(run->first, pgoff), min(run->last, pgoff + vma_pages(vma) - 1));
}

/**
 * ferry_walk_run() - visit each VMA that may map a folio of a run
 * @run:	the run, its folios locked
 * @one:	called with the address of page offset 0, and the first and the
 *		last page offset that the VMA shares with the run
 *
 * Context: process context. May sleep.
 */
void ferry_walk_run(struct ferry_run *run, ferry_walk_t one)
{
	struct anon_vma_chain *avc;
	struct vm_area_struct *vma;

	if (run->anon_vma) {
		anon_vma_lock_read(run->anon_vma);
		anon_rmap_tree_foreach(avc, run->anon_vma, run->first,
				       run->last)
			ferry_walk_vma(run, avc->vma,
				       vma_start_anon_pgoff(avc->vma), one);
		anon_vma_unlock_read(run->anon_vma);
		return;
	}
	i_mmap_lock_read(run->mapping);
	mapping_rmap_tree_foreach(vma, run->mapping, run->first, run->last)
		ferry_walk_vma(run, vma, vma_start_pgoff(vma), one);
	i_mmap_unlock_read(run->mapping);
}
