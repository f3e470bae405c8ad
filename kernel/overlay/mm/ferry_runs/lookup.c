// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Look-up of pages for move_pages(2)
 *
 * move_pages(2) looks each address up by itself: mmap_lock, VMA, page table
 * lock, LRU lock. ferry_add_folios() does so for up to 64 addresses at once:
 *
 *   1. Under mmap_lock it finds the folio of each address, and claims those
 *      that folio_isolate_lru() would isolate: it clears their LRU flag and
 *      takes a reference.
 *   2. ferry_lru_isolate() takes them off their LRU lists.
 *
 * It stops at the first address that is anything but a base page to be moved,
 * and leaves it to the code for single pages, which decides and reports. That
 * code calls it again after the next page that it has isolated. Where a look-up
 * finds too little to be worth it, the next calls do nothing: twice as many
 * each time.
 *
 * lru_cache_disable() waits for all CPUs, which costs more than the move of one
 * page. move_pages(2) needs it because a folio in the batch of a CPU is on no
 * list, or has one more reference. A call of few pages empties the batches of
 * its own CPU only, and disables them if a folio cannot be isolated or moved.
 *
 * Locking: mmap_lock -> page table lock, for at most 64 addresses; then the
 * lruvec lock.
 */

#include <linux/mempolicy.h>
#include <linux/mm.h>
#include <linux/mmap_lock.h>
#include <linux/swap.h>
#include <linux/uaccess.h>

#include "internal.h"

/* The most addresses that are looked up under one lock. */
#define FERRY_LOOKUP	64

/* A look-up that found fewer folios was not worth it. */
#define FERRY_LOOKUP_MIN	4

/* Where hardly any was worth it, one in 256 still notices a change. */
#define FERRY_LOOKUP_SKIP	255

/*
 * A call of fewer pages does without lru_cache_disable() at first. From this on
 * its cost, of about one move, is small.
 */
#define FERRY_LRU_FEW	32

/**
 * struct ferry_walk - where a look-up is
 * @mm:		the address space, mmap_lock held
 * @vma:	the VMA of the last address, or NULL
 * @table:	the page table of the last address
 */
struct ferry_walk {
	struct mm_struct *mm;
	struct vm_area_struct *vma;
	struct ferry_table table;
};

/* The PTE of an address, under the lock of its table; NULL if it is unusual. */
static pte_t *ferry_lookup_pte(struct ferry_walk *walk, unsigned long address)
{
	struct vm_area_struct *vma = walk->vma;

	if (unlikely(!vma || address < vma->vm_start ||
		     address >= vma->vm_end)) {
		ferry_table_leave(&walk->table);
		vma = vma_lookup(walk->mm, address);
		if (!vma || is_vm_hugetlb_page(vma) || !vma_migratable(vma))
			return NULL;
		walk->vma = vma;
	}
	return ferry_table_pte(&walk->table, walk->mm, address);
}

/* Claim the folio of an address if it is a base page to be moved to @node. */
static struct folio *ferry_lookup(struct ferry_walk *walk,
				  unsigned long address, int node, bool all)
{
	pte_t *ptep = ferry_lookup_pte(walk, address);
	struct folio *folio;
	pte_t pte;

	if (!ptep)
		return NULL;
	pte = ptep_get(ptep);
	if (!pte_present(pte))
		return NULL;
	folio = vm_normal_folio(walk->vma, address, pte);
	if (!folio || folio_test_large(folio) || is_zero_folio(folio) ||
	    folio_is_zone_device(folio) || folio_nid(folio) == node)
		return NULL;
	if (!all && folio_maybe_mapped_shared(folio))
		return NULL;
	if (!folio_test_clear_lru(folio))
		return NULL;
	folio_get(folio);
	return folio;
}

static unsigned int ferry_lookup_all(const struct ferry_lookup *lookup,
				     const void __user **addresses,
				     const int *nodes, unsigned int nr,
				     int node, struct folio **folios)
{
	struct mm_struct *mm = lookup->mm;
	struct ferry_walk walk = { .mm = mm };
	unsigned int i;

	mmap_read_lock(mm);
	for (i = 0; i < nr && nodes[i] == node; i++) {
		unsigned long address = (unsigned long)addresses[i];

		address = untagged_addr_remote(mm, address);
		folios[i] = ferry_lookup(&walk, address, node, lookup->all);
		if (!folios[i])
			break;
	}
	ferry_table_leave(&walk.table);
	mmap_read_unlock(mm);
	return i;
}

/* Add at most FERRY_LOOKUP folios; return whether there may be more. */
static bool ferry_add_some(const struct ferry_lookup *lookup, unsigned long i,
			   int node, struct list_head *list,
			   unsigned int *found)
{
	const void __user *addresses[FERRY_LOOKUP] __uninitialized;
	struct folio *folios[FERRY_LOOKUP] __uninitialized;
	int nodes[FERRY_LOOKUP] __uninitialized;
	unsigned int n = min(lookup->nr - i, FERRY_LOOKUP);

	*found = 0;
	if (copy_from_user(addresses, lookup->pages + i,
			   n * sizeof(addresses[0])) ||
	    copy_from_user(nodes, lookup->nodes + i, n * sizeof(nodes[0])))
		return false;
	*found = ferry_lookup_all(lookup, addresses, nodes, n, node, folios);
	ferry_lru_isolate(folios, *found, list);
	return *found == FERRY_LOOKUP && i + n < lookup->nr;
}

/* See ferry_add_folios(). */
unsigned long __ferry_add_folios(struct ferry_lookup *lookup, unsigned long i,
				 int node, struct list_head *list)
{
	unsigned long first = i;
	unsigned int found;
	bool more;

	do {
		cond_resched();
		more = ferry_add_some(lookup, i, node, list, &found);
		i += found;
	} while (more);
	if (i - first >= FERRY_LOOKUP_MIN)
		lookup->penalty = 0;
	else
		lookup->penalty = min(2 * lookup->penalty + 1,
				      FERRY_LOOKUP_SKIP);
	lookup->skip = lookup->penalty;
	return i - first;
}

/* See ferry_lookup_begin(). */
void __ferry_lookup_begin(struct ferry_lookup *lookup)
{
	lookup->lru_disabled = lookup->nr >= FERRY_LRU_FEW;
	if (lookup->lru_disabled)
		lru_cache_disable();
	else
		lru_add_drain();
}

/**
 * ferry_lookup_retry() - disable the LRU batches after a folio was missed
 * @lookup:	the call
 * @missed:	isolated folios that did not move; NULL if one was not isolated
 *
 * Context: process context. May sleep.
 * Return: true if that was not done before and may help, so that it is worth
 * another try: not if all of @missed still have a reference of others.
 */
bool ferry_lookup_retry(struct ferry_lookup *lookup, struct list_head *missed)
{
	struct folio *folio;

	if (lookup->lru_disabled)
		return false;
	lru_cache_disable();
	lookup->lru_disabled = true;
	if (!missed)
		return true;
	list_for_each_entry(folio, missed, lru)
		if (folio_ref_count(folio) <=
		    folio_expected_ref_count(folio) + 1)
			return true;
	return false;
}
