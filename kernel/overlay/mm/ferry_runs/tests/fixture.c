// SPDX-License-Identifier: GPL-2.0
/* Pages in the address space of a test: mapped, changed, isolated. */

#include <linux/memcontrol.h>
#include <linux/migrate.h>
#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/mman.h>
#include <linux/sizes.h>
#include <linux/swap.h>
#include <linux/uaccess.h>

#include "fixture.h"

int ferry_test_init(struct kunit *test)
{
	if (!node_online(1) || !node_state(1, N_MEMORY))
		kunit_skip(test, "one memory node");
	return 0;
}

/* Also after an assertion that has ended the test. */
void ferry_test_exit(struct kunit *test)
{
	static_branch_disable(&ferry_runs_enabled);
}

/*
 * Map the file, or anonymous memory: PAGES, readable and writable. The first
 * mapping of a test begins with a window of a run.
 */
unsigned long ferry_test_map(struct kunit *test, struct file *file)
{
	unsigned long start;

	start = kunit_vm_mmap(test, file, SZ_1G, BYTES, PROT_READ | PROT_WRITE,
			      file ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS,
			      0);
	KUNIT_ASSERT_FALSE(test, IS_ERR_VALUE(start));
	KUNIT_ASSERT_NE(test, start, 0);
	return start;
}

/* Write each page, so that it is there. */
void ferry_test_fill(struct kunit *test, unsigned long start)
{
	unsigned int i;

	for (i = 0; i < PAGES; i++)
		KUNIT_ASSERT_EQ(test, put_user(i, (u32 __user *)
					       (start + i * PAGE_SIZE)), 0);
	lru_add_drain_all();
}

/* Lock the page table of an address; enter it in @table. */
static pte_t *lock_pte(struct kunit *test, unsigned long address,
		       struct ferry_table *table)
{
	*table = (struct ferry_table){};
	KUNIT_ASSERT_TRUE(test, ferry_table_enter(table, current->mm, address));
	return table->start + pte_index(address);
}

static unsigned int bits_of(pte_t pte, struct page *page)
{
	return (pte_young(pte) ? HAS_YOUNG : 0) |
	       (pte_dirty(pte) ? HAS_DIRTY : 0) |
	       (pte_write(pte) ? HAS_WRITE : 0) |
	       (pte_uffd(pte) ? HAS_UFFD : 0) |
	       (pte_soft_dirty(pte) ? HAS_SOFT_DIRTY : 0) |
	       (pte_protnone(pte) ? HAS_PROTNONE : 0) |
	       (PageAnon(page) && PageAnonExclusive(page) ? HAS_EXCLUSIVE : 0);
}

/* Read the state of the page that an address maps. */
void ferry_test_read(struct kunit *test, unsigned long address,
		     struct page_state *state)
{
	struct ferry_table table;
	pte_t *ptep = lock_pte(test, address, &table), pte = ptep_get(ptep);
	struct folio *folio;

	ferry_table_leave(&table);
	KUNIT_ASSERT_TRUE(test, pte_present(pte));
	folio = page_folio(pfn_to_page(pte_pfn(pte)));
	state->bits = bits_of(pte, &folio->page);
	state->pfn = pte_pfn(pte);
	state->flags = folio->flags.f & (BIT(NR_PAGEFLAGS) - 1);
	/* A dirty PTE makes its folio dirty, which is not a loss. */
	if (state->bits & HAS_DIRTY)
		state->flags |= BIT(PG_dirty);
	rcu_read_lock();
	state->memcg = folio_memcg(folio);
	rcu_read_unlock();
	state->mapping = folio->mapping;
	state->index = folio->index;
	state->mapcount = folio_mapcount(folio);
	state->refs = folio_ref_count(folio);
}

/* Give a PTE the bits of @bits, as far as they may stand together. */
void ferry_test_set_bits(struct kunit *test, unsigned long address,
			 unsigned int bits)
{
	struct ferry_table table;
	pte_t *ptep = lock_pte(test, address, &table), pte = ptep_get(ptep);
	struct page *page = pfn_to_page(pte_pfn(pte));

	/* A new page may be written, a hinting PTE may not. */
	if ((bits & HAS_WRITE) && !(bits & HAS_PROTNONE))
		KUNIT_EXPECT_TRUE(test, pte_write(pte));
	folio_clear_dirty(page_folio(page));
	/* Some architectures may set the bits of a present PTE at any time. */
	pte = ptep_get_and_clear(current->mm, address, ptep);
	pte = bits & HAS_YOUNG ? pte_mkyoung(pte) : pte_mkold(pte);
	pte = bits & HAS_DIRTY ? pte_mkdirty(pte) : pte_mkclean(pte);
	pte = bits & HAS_SOFT_DIRTY ? pte_mksoft_dirty(pte) :
				  pte_clear_soft_dirty(pte);
	if (!(bits & HAS_WRITE))
		pte = pte_wrprotect(pte);
	if (!(bits & HAS_WRITE) && (bits & HAS_UFFD))
		pte = pte_mkuffd(pte);
	if (bits & HAS_PROTNONE)
		pte = pte_modify(pte, PAGE_NONE);
	if (PageAnon(page) && !pte_write(pte) && !(bits & HAS_EXCLUSIVE))
		ClearPageAnonExclusive(page);
	set_pte_at(current->mm, address, ptep, pte);
	ferry_table_leave(&table);
}

/* Isolate the folio that an address maps. */
void ferry_test_isolate(struct kunit *test, unsigned long address,
			struct list_head *folios)
{
	struct page_state state;

	ferry_test_read(test, address, &state);
	KUNIT_ASSERT_TRUE(test, isolate_folio_to_list(pfn_folio(state.pfn),
						      folios));
}

/* Isolate all folios, each to the head of the list: it begins with the first */
void ferry_test_isolate_all(struct kunit *test, unsigned long start,
			    struct list_head *folios)
{
	unsigned int i;

	for (i = PAGES; i > 0; i--)
		ferry_test_isolate(test, start + (i - 1) * PAGE_SIZE, folios);
}

u64 ferry_test_stat(enum ferry_run_stat stat)
{
	return atomic64_read(&ferry_run_stats[stat]);
}
