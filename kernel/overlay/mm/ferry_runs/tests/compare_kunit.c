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
#include <linux/shmem_fs.h>
#include <linux/swap.h>

#include "fixture.h"

/* Give each page its own combination of bits. */
static void set_all_bits(struct kunit *test, unsigned long start)
{
	unsigned int i;

	for (i = 0; i < PAGES; i++)
		ferry_test_set_bits(test, start + i * PAGE_SIZE, i);
	flush_tlb_mm(current->mm);
}

static long sum_node_stat(int nid, enum node_stat_item item)
{
	struct pglist_data *pgdat = NODE_DATA(nid);
	/* node_page_state_pages() hides that it is negative at times. */
	long sum = atomic_long_read(&pgdat->vm_stat[item]);
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

/* Migrate all pages to a node, and return how many of them in runs. */
static u64 migrate(struct kunit *test, unsigned long start, int nid)
{
	struct migration_target_control mtc = {
		.nid = nid,
		.gfp_mask = GFP_HIGHUSER_MOVABLE | __GFP_THISNODE,
		.reason = MR_SYSCALL,
	};
	u64 before = ferry_test_stat(FERRY_RUN_MOVED);
	LIST_HEAD(folios);
	int left;

	ferry_test_isolate_all(test, start, &folios);
	left = migrate_pages(&folios, alloc_migration_target, NULL,
			     (unsigned long)&mtc, MIGRATE_SYNC, MR_SYSCALL,
			     NULL);
	if (left)
		putback_movable_pages(&folios);
	KUNIT_EXPECT_EQ(test, left, 0);
	lru_add_drain_all();
	return ferry_test_stat(FERRY_RUN_MOVED) - before;
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
	u64 left = ferry_test_stat(FERRY_RUN_UNSUPPORTED);
	struct page_state *before, after;
	unsigned int i;
	long was[2][ARRAY_SIZE(items)];

	before = kunit_kcalloc(test, PAGES, sizeof(*before), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, before);
	for (i = 0; i < PAGES; i++)
		ferry_test_read(test, start + i * PAGE_SIZE, &before[i]);
	read_stats(0, was[0]);
	read_stats(1, was[1]);
	if (runs)
		static_branch_enable(&ferry_runs_enabled);
	KUNIT_EXPECT_EQ(test, migrate(test, start, 1), runs ? PAGES : 0);
	static_branch_disable(&ferry_runs_enabled);
	/* Those left would be moved in runs as well, but unmapped singly. */
	KUNIT_EXPECT_EQ(test, ferry_test_stat(FERRY_RUN_UNSUPPORTED), left);
	read_stats(0, changes->here);
	read_stats(1, changes->there);
	for (i = 0; i < ARRAY_SIZE(items); i++) {
		changes->here[i] -= was[0][i];
		changes->there[i] -= was[1][i];
	}
	for (i = 0; i < PAGES; i++) {
		ferry_test_read(test, start + i * PAGE_SIZE, &after);
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

	ferry_test_fill(test, single);
	ferry_test_fill(test, runs);
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

static void anon(struct kunit *test)
{
	compare(test, ferry_test_map(test, NULL), ferry_test_map(test, NULL));
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
	compare(test, ferry_test_map(test, new_shmem(test)),
		ferry_test_map(test, new_shmem(test)));
}

/* Each page has a second PTE, which must change as well. */
static void shmem_mapped_twice(struct kunit *test)
{
	struct file *file[2] = { new_shmem(test), new_shmem(test) };
	unsigned long area[2], again[2];
	struct page_state first, second;
	unsigned int i, k;

	for (k = 0; k < 2; k++) {
		area[k] = ferry_test_map(test, file[k]);
		again[k] = ferry_test_map(test, file[k]);
		ferry_test_fill(test, again[k]);
		set_all_bits(test, again[k]);
	}
	compare(test, area[0], area[1]);
	for (k = 0; k < 2; k++) {
		for (i = 0; i < BYTES; i += PAGE_SIZE) {
			ferry_test_read(test, area[k] + i, &first);
			ferry_test_read(test, again[k] + i, &second);
			KUNIT_EXPECT_EQ(test, first.pfn, second.pfn);
			KUNIT_EXPECT_EQ(test, second.mapcount, 2);
		}
	}
}

static void compare_files(struct kunit *test, enum file_kind kind)
{
	compare(test, ferry_test_map(test, ferry_test_file(test, kind)),
		ferry_test_map(test, ferry_test_file(test, kind)));
}

static void file(struct kunit *test)
{
	compare_files(test, PLAIN);
}

static void file_private(struct kunit *test)
{
	compare_files(test, PRIVATE);
}

static void file_buffers(struct kunit *test)
{
	compare_files(test, BUFFERS);
}

static void file_buffers_norefs(struct kunit *test)
{
	compare_files(test, BUFFERS_NOREFS);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(anon),
	KUNIT_CASE(file),
	KUNIT_CASE(file_private),
	KUNIT_CASE(file_buffers),
	KUNIT_CASE(file_buffers_norefs),
	KUNIT_CASE(shmem),
	KUNIT_CASE(shmem_mapped_twice),
	{}
};

static struct kunit_suite suite = {
	.name = "ferry_runs",
	.init = ferry_test_init,
	.exit = ferry_test_exit,
	.suite_init = ferry_test_mount,
	.suite_exit = ferry_test_unmount,
	.test_cases = cases,
};

kunit_test_suite(suite);
