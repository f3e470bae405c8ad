/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The parts of page migration that mm/rmap.c, mm/migrate.c and mm/ferry_runs
 * share: the replacement of a PTE by a migration entry and back, and the state
 * of a folio between the two.
 */
#ifndef __MM_MIGRATE_H
#define __MM_MIGRATE_H

#include <linux/ferry.h>
#include <linux/hugetlb.h>
#include <linux/leafops.h>
#include <linux/migrc.h>
#include <linux/rmap.h>
#include <linux/userfaultfd_k.h>

struct anon_vma;

/*
 * Until it is mapped, the migrate_info of a destination folio records the state
 * of the source in the low bits of an anon_vma pointer.
 */
enum {
	FOLIO_WAS_MAPPED = BIT(0),
	FOLIO_WAS_MLOCKED = BIT(1),
	/* set by ferry_copy_folios() */
	FOLIO_COPIED = FERRY_FOLIO_COPIED,
	/* set by migrc_folio_unmapped() */
	FOLIO_DEFERRED = MIGRC_FOLIO_DEFERRED,
	FOLIO_OLD_STATES = FOLIO_WAS_MAPPED | FOLIO_WAS_MLOCKED | FOLIO_COPIED |
			   FOLIO_DEFERRED,
};

static inline void __migrate_folio_record(struct folio *dst,
					  int old_folio_state,
					  struct anon_vma *anon_vma)
{
	dst->migrate_info = (unsigned long)anon_vma | old_folio_state;
}

static inline void __migrate_folio_extract(struct folio *dst,
					   int *old_folio_state,
					   struct anon_vma **anon_vmap)
{
	unsigned long info = dst->migrate_info;

	*anon_vmap = (struct anon_vma *)(info & ~FOLIO_OLD_STATES);
	*old_folio_state = info & FOLIO_OLD_STATES;
	dst->migrate_info = 0;
}

/* Let a new folio take the place of one that is in no cache. */
static inline void migrate_uncached_folio(struct folio *newfolio,
					  struct folio *folio)
{
	newfolio->index = folio->index;
	newfolio->mapping = folio->mapping;
	if (folio_test_swapbacked(folio))
		__folio_set_swapbacked(newfolio);
}

int move_to_new_folio(struct folio *dst, struct folio *src,
		      enum migrate_mode mode, bool copied);

/**
 * flush_cleared_ptes() - flush a range whose PTEs were cleared without a flush
 * @vma:	VMA of the range
 * @dirty:	a PTE of the range was dirty
 * @start:	first address
 * @end:	the one after the last
 *
 * Does the flush now, or adds it to that of the batch: try_to_unmap_flush().
 *
 * Context: under the lock of the page table.
 */
void flush_cleared_ptes(struct vm_area_struct *vma, bool dirty,
			unsigned long start, unsigned long end);

/* The migration entry for a PTE that was cleared. */
static __always_inline pte_t make_migration_pte(struct page *page, pte_t pteval,
						bool writable,
						bool anon_exclusive)
{
	swp_entry_t entry;
	pte_t swp_pte;

	/*
	 * Store the pfn of the page in a special migration pte. do_swap_page()
	 * will wait until the migration pte is removed and then restart fault
	 * handling.
	 */
	if (writable) {
		entry = make_writable_migration_entry(page_to_pfn(page));
	} else if (anon_exclusive) {
		const unsigned long pfn = page_to_pfn(page);

		entry = make_readable_exclusive_migration_entry(pfn);
	} else {
		entry = make_readable_migration_entry(page_to_pfn(page));
	}
	if (likely(pte_present(pteval))) {
		if (pte_young(pteval))
			entry = make_migration_entry_young(entry);
		if (pte_dirty(pteval))
			entry = make_migration_entry_dirty(entry);
		swp_pte = swp_entry_to_pte(entry);
		if (pte_soft_dirty(pteval))
			swp_pte = pte_swp_mksoft_dirty(swp_pte);
		if (pte_uffd(pteval))
			swp_pte = pte_swp_mkuffd(swp_pte);
	} else {
		swp_pte = swp_entry_to_pte(entry);
		if (pte_swp_soft_dirty(pteval))
			swp_pte = pte_swp_mksoft_dirty(swp_pte);
		if (pte_swp_uffd(pteval))
			swp_pte = pte_swp_mkuffd(swp_pte);
	}
	return swp_pte;
}

/* set_pte_at(), for a hugetlb folio of @hsz bytes too; 0 for any other. */
static __always_inline void set_folio_pte_at(struct mm_struct *mm,
					     unsigned long address, pte_t *ptep,
					     pte_t pte, unsigned long hsz)
{
	if (hsz)
		set_huge_pte_at(mm, address, ptep, pte, hsz);
	else
		set_pte_at(mm, address, ptep, pte);
}

/**
 * set_migration_pte() - set a PTE that was cleared to a migration entry
 * @folio:	the folio, locked
 * @page:	the page of it that the PTE mapped
 * @vma:	VMA of the PTE
 * @address:	address that it maps
 * @ptep:	the PTE, cleared
 * @pteval:	its value before
 * @writable:	it permitted writing
 * @anon_exclusive: @page is an anonymous page that this PTE maps exclusively
 * @hsz:	size of a hugetlb folio, otherwise 0
 *
 * Context: under the PTE's lock.
 * Return: true if the folio is no longer mapped by the PTE; false if the folio
 * cannot be migrated and the PTE is as before.
 */
static __always_inline bool
set_migration_pte(struct folio *folio, struct page *page,
		  struct vm_area_struct *vma, unsigned long address,
		  pte_t *ptep, pte_t pteval, bool writable, bool anon_exclusive,
		  unsigned long hsz)
{
	struct mm_struct *mm = vma->vm_mm;
	pte_t swp_pte;

	if (PageHWPoison(page)) {
		VM_WARN_ON_FOLIO(folio_is_device_private(folio), folio);

		pteval = swp_entry_to_pte(make_hwpoison_entry(page));
		if (hsz)
			hugetlb_count_sub(folio_nr_pages(folio), mm);
		else
			dec_mm_counter(mm, mm_counter(folio));
		set_folio_pte_at(mm, address, ptep, pteval, hsz);
		return true;
	}
	if (likely(pte_present(pteval)) && pte_unused(pteval) &&
	    !userfaultfd_armed(vma)) {
		/*
		 * The guest indicated that the page content is of no
		 * interest anymore. Simply discard the pte, vmscan
		 * will take care of the rest.
		 * A future reference will then fault in a new zero
		 * page. When userfaultfd is active, we must not drop
		 * this page though, as its main user (postcopy
		 * migration) will not expect userfaults on already
		 * copied pages.
		 */
		dec_mm_counter(mm, mm_counter(folio));
		return true;
	}
	/*
	 * arch_unmap_one() is expected to be a NOP on architectures where we
	 * could have PFN swap PTEs, so we'll not check/care.
	 */
	if (arch_unmap_one(mm, vma, address, pteval) < 0)
		goto restore;

	/* See folio_try_share_anon_rmap_pte(): clear PTE first. */
	if (anon_exclusive && (hsz ? hugetlb_try_share_anon_rmap(folio) :
			       folio_try_share_anon_rmap_pte(folio, page)))
		goto restore;

	swp_pte = make_migration_pte(page, pteval, writable, anon_exclusive);
	set_folio_pte_at(mm, address, ptep, swp_pte, hsz);
	trace_set_migration_pte(address, pte_val(swp_pte), folio_order(folio));
	/*
	 * No need to invalidate here it will synchronize on against the special
	 * swap migration pte.
	 */
	return true;
restore:
	set_folio_pte_at(mm, address, ptep, pteval, hsz);
	return false;
}

/**
 * make_migrated_pte() - the PTE that replaces a migration entry
 * @folio:	the folio to map
 * @page:	the page of it
 * @vma:	VMA of the PTE
 * @old_pte:	the PTE with the migration entry
 * @entry:	the migration entry
 *
 * Context: under the PTE's lock.
 * Return: the PTE; for device private memory, its swap PTE.
 */
static __always_inline pte_t
make_migrated_pte(struct folio *folio, struct page *page,
		  struct vm_area_struct *vma, pte_t old_pte, softleaf_t entry)
{
	pte_t pte = mk_pte(page, READ_ONCE(vma->vm_page_prot));

	if (!softleaf_is_migration_young(entry))
		pte = pte_mkold(pte);
	if (folio_test_dirty(folio) && softleaf_is_migration_dirty(entry))
		pte = pte_mkdirty(pte);
	if (pte_swp_soft_dirty(old_pte))
		pte = pte_mksoft_dirty(pte);
	else
		pte = pte_clear_soft_dirty(pte);

	if (softleaf_is_migration_write(entry))
		pte = pte_mkwrite(pte, vma);
	else if (pte_swp_uffd(old_pte))
		pte = pte_mkuffd(pte);

	/* See do_swap_page(): restore PAGE_NONE for RWP */
	if (pte_swp_uffd(old_pte) && userfaultfd_rwp(vma))
		pte = pte_modify(pte, PAGE_NONE);

	if (unlikely(is_device_private_page(page))) {
		const unsigned long pfn = page_to_pfn(page);

		if (pte_write(pte))
			entry = make_writable_device_private_entry(pfn);
		else
			entry = make_readable_device_private_entry(pfn);
		pte = softleaf_to_pte(entry);
		if (pte_swp_soft_dirty(old_pte))
			pte = pte_swp_mksoft_dirty(pte);
		if (pte_swp_uffd(old_pte))
			pte = pte_swp_mkuffd(pte);
	}
	return pte;
}

/* The rmap flags with which make_migrated_pte()'s page is mapped. */
static __always_inline rmap_t migrated_rmap_flags(const struct folio *folio,
						  softleaf_t entry)
{
	return folio_test_anon(folio) && !softleaf_is_migration_read(entry) ?
	       RMAP_EXCLUSIVE : RMAP_NONE;
}

#endif /* __MM_MIGRATE_H */
