// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Comparison of runs with single folios
 *
 * The tests map pages whose PTEs have each combination of their bits, migrate
 * them once as single folios and once in runs, and compare the PTEs, the folios
 * and the statistics after with those before. Both ways must leave them
 * unchanged, except for the place of the memory.
 */

#include <kunit/test.h>
#include <linux/file.h>
#include <linux/memcontrol.h>
#include <linux/migrate.h>
#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/mman.h>
#include <linux/shmem_fs.h>
#include <linux/swap.h>
#include <linux/uaccess.h>

#include "../internal.h"

/* More than two runs, and all combinations of the bits below. */
#define PAGES	160
#define BYTES	(PAGES * PAGE_SIZE)

/* The bits of a PTE, and of the page that it maps. */
enum {
	HAS_YOUNG = BIT(0),
	HAS_DIRTY = BIT(1),
	HAS_WRITE = BIT(2),
	HAS_SOFT_DIRTY = BIT(3),
	HAS_UFFD = BIT(4),
	HAS_PROTNONE = BIT(5),
	HAS_EXCLUSIVE = BIT(6),
};

/* The state of a page, which migration must not change. */
struct page_state {
	unsigned int bits;
	unsigned long pfn;
	unsigned long flags;
	struct mem_cgroup *memcg;
	struct address_space *mapping;
	pgoff_t index;
	int mapcount;
	int refs;
};

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

static void read_state(struct kunit *test, unsigned long address,
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
static void set_bits(struct kunit *test, unsigned long address,
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

/* Write each page, so that it is there. */
static void fill(struct kunit *test, unsigned long start)
{
	unsigned int i;

	for (i = 0; i < PAGES; i++)
		KUNIT_ASSERT_EQ(test, put_user(i, (u32 __user *)
					       (start + i * PAGE_SIZE)), 0);
	lru_add_drain_all();
}

/* Give each page its own combination of bits. */
static void set_all_bits(struct kunit *test, unsigned long start)
{
	unsigned int i;

	for (i = 0; i < PAGES; i++)
		set_bits(test, start + i * PAGE_SIZE, i);
	flush_tlb_mm(current->mm);
}

static long sum_node_stat(int nid, enum node_stat_item item)
{
	struct pglist_data *pgdat = NODE_DATA(nid);
	long sum = node_page_state_pages(pgdat, item);
	int cpu;

	for_each_online_cpu(cpu)
		sum += per_cpu_ptr(pgdat->per_cpu_nodestats, cpu)->
			vm_node_stat_diff[item];
	return sum;
}

/*
 * A statistic of a node, with the changes that CPUs have not added yet. If one
 * of them adds its changes now, the next sum differs.
 */
static long node_stat(int nid, enum node_stat_item item)
{
	long last, sum = sum_node_stat(nid, item);

	do {
		last = sum;
		sum = sum_node_stat(nid, item);
	} while (sum != last);
	return sum;
}

static const enum node_stat_item items[] = {
	NR_ACTIVE_ANON, NR_INACTIVE_ANON, NR_ACTIVE_FILE, NR_INACTIVE_FILE,
	NR_UNEVICTABLE, NR_ISOLATED_ANON, NR_ISOLATED_FILE, NR_ANON_MAPPED,
	NR_FILE_MAPPED, NR_FILE_PAGES, NR_SHMEM, NR_FILE_DIRTY,
};

static void read_stats(int nid, long *stats)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(items); i++)
		stats[i] = node_stat(nid, items[i]);
}

static void isolate(struct kunit *test, unsigned long start,
		    struct list_head *folios)
{
	struct page_state state;
	unsigned int i;

	for (i = 0; i < PAGES; i++) {
		read_state(test, start + i * PAGE_SIZE, &state);
		KUNIT_ASSERT_TRUE(test,
				  isolate_folio_to_list(pfn_folio(state.pfn),
							folios));
	}
}

static u64 moved_in_runs(void)
{
	return atomic64_read(&ferry_run_stats[FERRY_RUN_MOVED]);
}

/* Migrate all pages to a node, and return how many of them in runs. */
static u64 migrate(struct kunit *test, unsigned long start, int nid)
{
	struct migration_target_control mtc = {
		.nid = nid,
		.gfp_mask = GFP_HIGHUSER_MOVABLE | __GFP_THISNODE,
		.reason = MR_SYSCALL,
	};
	u64 before = moved_in_runs();
	LIST_HEAD(folios);
	int left;

	isolate(test, start, &folios);
	left = migrate_pages(&folios, alloc_migration_target, NULL,
			     (unsigned long)&mtc, MIGRATE_SYNC, MR_SYSCALL,
			     NULL);
	if (left)
		putback_movable_pages(&folios);
	KUNIT_EXPECT_EQ(test, left, 0);
	lru_add_drain_all();
	return moved_in_runs() - before;
}

static void expect_state(struct kunit *test, unsigned int page,
			 const struct page_state *before,
			 const struct page_state *after)
{
	unsigned int shared = folio_test_anon(pfn_folio(after->pfn)) ? 0 :
			      HAS_WRITE;

	KUNIT_EXPECT_NE_MSG(test, before->pfn, after->pfn, "page %u", page);
	/*
	 * Migration makes a hinting PTE accessible, as a hinting fault does.
	 * In a shared mapping it restores the permission to write.
	 */
	KUNIT_EXPECT_EQ_MSG(test, (before->bits & ~HAS_PROTNONE) | shared,
			    after->bits | shared, "page %u", page);
	KUNIT_EXPECT_EQ_MSG(test, before->flags, after->flags, "page %u", page);
	KUNIT_EXPECT_PTR_EQ_MSG(test, before->memcg, after->memcg, "page %u",
				page);
	KUNIT_EXPECT_PTR_EQ_MSG(test, before->mapping, after->mapping,
				"page %u", page);
	KUNIT_EXPECT_EQ_MSG(test, before->index, after->index, "page %u", page);
	KUNIT_EXPECT_EQ_MSG(test, before->mapcount, after->mapcount, "page %u",
			    page);
	KUNIT_EXPECT_EQ_MSG(test, before->refs, after->refs, "page %u", page);
}

/* The changes of the statistics of both nodes by one migration. */
struct changes {
	long here[ARRAY_SIZE(items)];
	long there[ARRAY_SIZE(items)];
};

/* Migrate pages from node 0 to 1, and check that nothing else changes. */
static void migrate_and_check(struct kunit *test, unsigned long start,
			      bool runs, struct changes *changes)
{
	struct page_state *before, after;
	unsigned int i;
	long was[2][ARRAY_SIZE(items)];

	before = kunit_kcalloc(test, PAGES, sizeof(*before), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, before);
	for (i = 0; i < PAGES; i++)
		read_state(test, start + i * PAGE_SIZE, &before[i]);
	read_stats(0, was[0]);
	read_stats(1, was[1]);
	if (runs)
		static_branch_enable(&ferry_runs_enabled);
	KUNIT_EXPECT_EQ(test, migrate(test, start, 1), runs ? PAGES : 0);
	static_branch_disable(&ferry_runs_enabled);
	read_stats(0, changes->here);
	read_stats(1, changes->there);
	for (i = 0; i < ARRAY_SIZE(items); i++) {
		changes->here[i] -= was[0][i];
		changes->there[i] -= was[1][i];
	}
	for (i = 0; i < PAGES; i++) {
		read_state(test, start + i * PAGE_SIZE, &after);
		expect_state(test, i, &before[i], &after);
	}
}

/*
 * Migrate each of two areas of the same content in one way, and compare. Other
 * tasks change the statistics now and then, which does not happen each time.
 */
static void compare(struct kunit *test, unsigned long single,
		    unsigned long runs)
{
	struct changes one, other;
	unsigned int i, attempt;

	fill(test, single);
	fill(test, runs);
	for (attempt = 0; attempt < 5; attempt++) {
		/* Both areas start on the same node. */
		migrate(test, single, 0);
		migrate(test, runs, 0);
		set_all_bits(test, single);
		set_all_bits(test, runs);
		migrate_and_check(test, single, false, &one);
		migrate_and_check(test, runs, true, &other);
		if (!memcmp(&one, &other, sizeof(one)))
			return;
	}
	for (i = 0; i < ARRAY_SIZE(items); i++) {
		KUNIT_EXPECT_EQ_MSG(test, one.here[i], other.here[i], "%s",
				    node_stat_name(items[i]));
		KUNIT_EXPECT_EQ_MSG(test, one.there[i], other.there[i], "%s",
				    node_stat_name(items[i]));
	}
}

static unsigned long map(struct kunit *test, struct file *file)
{
	unsigned long start;

	start = kunit_vm_mmap(test, file, 0, BYTES, PROT_READ | PROT_WRITE,
			      file ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS,
			      0);
	KUNIT_ASSERT_FALSE(test, IS_ERR_VALUE(start));
	KUNIT_ASSERT_NE(test, start, 0);
	return start;
}

static void anon(struct kunit *test)
{
	compare(test, map(test, NULL), map(test, NULL));
}

static void put_file(void *file)
{
	fput(file);
}

static struct file *new_shmem(struct kunit *test)
{
	struct file *file = shmem_file_setup("compare", BYTES,
					     EMPTY_VMA_FLAGS);

	KUNIT_ASSERT_FALSE(test, IS_ERR(file));
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, put_file, file),
			0);
	return file;
}

static void shmem(struct kunit *test)
{
	compare(test, map(test, new_shmem(test)), map(test, new_shmem(test)));
}

/* Each page has a second PTE, which must change as well. */
static void shmem_mapped_twice(struct kunit *test)
{
	struct file *file[2] = { new_shmem(test), new_shmem(test) };
	unsigned long area[2], again[2];
	struct page_state first, second;
	unsigned int i, k;

	for (k = 0; k < 2; k++) {
		area[k] = map(test, file[k]);
		again[k] = map(test, file[k]);
		fill(test, again[k]);
		set_all_bits(test, again[k]);
	}
	compare(test, area[0], area[1]);
	for (k = 0; k < 2; k++) {
		for (i = 0; i < PAGES; i++) {
			read_state(test, area[k] + i * PAGE_SIZE, &first);
			read_state(test, again[k] + i * PAGE_SIZE, &second);
			KUNIT_EXPECT_EQ(test, first.pfn, second.pfn);
			KUNIT_EXPECT_EQ(test, second.mapcount, 2);
		}
	}
}

static int needs_two_nodes(struct kunit *test)
{
	if (!node_online(1) || !node_state(1, N_MEMORY))
		kunit_skip(test, "one memory node");
	return 0;
}

static struct kunit_case cases[] = {
	KUNIT_CASE(anon),
	KUNIT_CASE(shmem),
	KUNIT_CASE(shmem_mapped_twice),
	{}
};

/* Also after an assertion that has ended the test. */
static void disable_runs(struct kunit *test)
{
	static_branch_disable(&ferry_runs_enabled);
}

static struct kunit_suite suite = {
	.name = "ferry_runs",
	.init = needs_two_nodes,
	.exit = disable_runs,
	.test_cases = cases,
};

kunit_test_suite(suite);
