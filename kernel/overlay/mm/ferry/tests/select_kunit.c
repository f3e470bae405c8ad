// SPDX-License-Identifier: GPL-2.0
/* Registration, the selector, and the limits of a batch. */

#include <kunit/test.h>
#include <linux/mm.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "../internal.h"

static int select_test_copy(struct ferry_batch *batch)
{
	return -EOPNOTSUPP;
}

static const struct ferry_migrator select_migrator = {
	.name = "kunit",
	.copy = select_test_copy,
};

static void expect_list(struct kunit *test, const char *word)
{
	char *buf = (char *)get_zeroed_page(GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, buf);
	ferry_list(FERRY_DEFAULT, buf);
	KUNIT_EXPECT_NOT_NULL_MSG(test, strstr(buf, word), "%s not in %s",
				  word, buf);
	free_page((unsigned long)buf);
}

static bool batch_full(unsigned int folios, unsigned long pages)
{
	return __ferry_batch_full(folios, pages, MR_SYSCALL);
}

static void select_words(struct kunit *test)
{
	expect_list(test, "[off]");
	KUNIT_EXPECT_EQ(test, ferry_select(FERRY_DEFAULT, "kernel\n"), 0);
	expect_list(test, "[kernel]");
	KUNIT_EXPECT_EQ(test, ferry_select(FERRY_DEFAULT, "unknown"), -EINVAL);
	KUNIT_EXPECT_EQ(test, ferry_select(FERRY_DEFAULT, ""), -EINVAL);
	expect_list(test, "[kernel]");
	KUNIT_EXPECT_EQ(test, ferry_select(FERRY_DEFAULT, "off"), 0);
	expect_list(test, "[off]");
}

/* "reserved" stands for a directory that is no migrator's, as that of migrc. */
static void register_bad_names(struct kunit *test)
{
	static const char * const names[] = {
		"", "off", "inherit", "stats", "reasons", "reserved",
		"migrator", "batch_min_bytes", "a b", "a/b", "[a]",
	};
	struct kobject *dir = ferry_sysfs_dir("reserved", NULL);
	unsigned int i;

	KUNIT_ASSERT_FALSE(test, IS_ERR(dir));
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		struct ferry_migrator bad = select_migrator;

		bad.name = names[i];
		KUNIT_EXPECT_EQ_MSG(test, ferry_register(&bad), -EINVAL,
				    "name '%s'", names[i]);
	}
	kobject_del(dir);
	kobject_put(dir);
}

static void register_twice(struct kunit *test)
{
	KUNIT_ASSERT_EQ(test, ferry_register(&select_migrator), 0);
	KUNIT_EXPECT_EQ(test, ferry_register(&select_migrator), -EEXIST);
	expect_list(test, " kunit");
	ferry_unregister(&select_migrator);
}

/* When a selected built-in migrator unregisters, kernel is selected. */
static void unregister_selected(struct kunit *test)
{
	KUNIT_ASSERT_EQ(test, ferry_register(&select_migrator), 0);
	KUNIT_EXPECT_EQ(test, ferry_select(FERRY_DEFAULT, "kunit"), 0);
	expect_list(test, "[kunit]");
	ferry_unregister(&select_migrator);
	expect_list(test, "[kernel]");
	KUNIT_EXPECT_EQ(test, ferry_select(FERRY_DEFAULT, "off"), 0);
}

static void limit_follows_rate(struct kunit *test)
{
	const unsigned long stock = FERRY_STOCK_BYTES, most = 16 * stock;

	/* Unknown or slow: as without an offload migrator. */
	KUNIT_EXPECT_EQ(test, ferry_limit(0, 4000, most), stock);
	KUNIT_EXPECT_EQ(test, ferry_limit(1, 4000, most), stock);
	KUNIT_EXPECT_EQ(test, ferry_limit(stock, 5, most), 5 * stock);
	KUNIT_EXPECT_EQ(test, ferry_limit(stock, 17, most), most);
	KUNIT_EXPECT_EQ(test, ferry_limit(ULONG_MAX, 4000, most), most);
	/* With large pages such a batch may exceed the knob. */
	KUNIT_EXPECT_EQ(test, ferry_limit(ULONG_MAX, 4000, stock / 2), stock);
}

/* Batches grow with a fast migrator, and shrink when one CPU copied alone. */
static void limit_resets_when_serial(struct kunit *test)
{
	int nid = numa_node_id();
	struct ferry_batch *batch;

	batch = kunit_kzalloc(test, sizeof(*batch), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, batch);
	batch->reason = MR_SYSCALL;
	batch->src_nid = nid;
	batch->dst_nid = nid;
	ferry_rates_forget(MR_SYSCALL);
	KUNIT_EXPECT_EQ(test, ferry_limit_of(MR_SYSCALL, nid, nid),
			FERRY_STOCK_BYTES);
	ferry_rate_update(MR_SYSCALL, nid, nid, SZ_1G,
			  NSEC_PER_USEC);
	ferry_rate_update(MR_SYSCALL, nid, nid, SZ_1G,
			  NSEC_PER_USEC);
	KUNIT_EXPECT_EQ(test, ferry_rate(MR_SYSCALL, nid, nid), SZ_1G);
	KUNIT_EXPECT_GT(test, ferry_limit_of(MR_SYSCALL, nid, nid),
			FERRY_STOCK_BYTES);
	/* A batch that is too small to be shared changes nothing. */
	batch->bytes = (FERRY_BATCH_FOLIOS - 1) * PAGE_SIZE;
	ferry_gained_nothing(batch);
	KUNIT_EXPECT_EQ(test, ferry_rate(MR_SYSCALL, nid, nid), SZ_1G);
	batch->bytes = FERRY_BATCH_FOLIOS * PAGE_SIZE;
	ferry_gained_nothing(batch);
	KUNIT_EXPECT_EQ(test, ferry_limit_of(MR_SYSCALL, nid, nid),
			FERRY_STOCK_BYTES);
	ferry_rates_forget(MR_SYSCALL);
}

static void add_folio(struct kunit *test, struct list_head *folios,
		      unsigned int order)
{
	struct folio *folio = folio_alloc(GFP_KERNEL, order);

	KUNIT_ASSERT_NOT_NULL(test, folio);
	list_add(&folio->lru, folios);
}

static void free_folios(struct list_head *folios)
{
	struct folio *folio, *next;

	list_for_each_entry_safe(folio, next, folios, lru)
		folio_put(folio);
}

/* Where nothing was gained the CPU's next lists go without the migrator. */
static void rests_without_gain(struct kunit *test)
{
	struct ferry_batch *batch;
	unsigned int rested = 0;
	LIST_HEAD(folios);

	batch = kunit_kzalloc(test, sizeof(*batch), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, batch);
	KUNIT_ASSERT_EQ(test, ferry_register(&select_migrator), 0);
	KUNIT_EXPECT_EQ(test, ferry_select(FERRY_DEFAULT, "kunit"), 0);
	migrate_disable();
	add_folio(test, &folios, 0);
	KUNIT_EXPECT_FALSE(test, ferry_may_gain(&folios));
	add_folio(test, &folios, get_order(ferry_batch_min_bytes));
	KUNIT_EXPECT_TRUE(test, ferry_may_gain(&folios));
	batch->bytes = FERRY_STOCK_BYTES;
	/* An engine that rejects this batch may want the next one. */
	ferry_gained_nothing(batch);
	KUNIT_EXPECT_TRUE(test, ferry_may_gain(&folios));
	batch->serial = true;
	ferry_gained_nothing(batch);
	KUNIT_EXPECT_TRUE(test, batch_full(1, FERRY_STOCK_PAGES));
	while (rested < 1000 && !ferry_may_gain(&folios))
		rested++;
	KUNIT_EXPECT_GT(test, rested, 15);
	KUNIT_EXPECT_LT(test, rested, 1000);
	KUNIT_EXPECT_FALSE(test, batch_full(1, FERRY_STOCK_PAGES));
	migrate_enable();
	free_folios(&folios);
	KUNIT_EXPECT_EQ(test, ferry_select(FERRY_DEFAULT, "off"), 0);
	ferry_unregister(&select_migrator);
}

/* One list of a few pages does not keep the CPU's larger ones from it. */
static void small_rests_alone(struct kunit *test)
{
	unsigned int order = get_order(FERRY_SHARED_BYTES / 2), rested = 0;
	struct ferry_batch *batch;
	LIST_HEAD(folios);

	batch = kunit_kzalloc(test, sizeof(*batch), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, batch);
	migrate_disable();
	add_folio(test, &folios, order);
	batch->bytes = FERRY_SHARED_BYTES - PAGE_SIZE;
	batch->serial = true;
	ferry_gained_nothing(batch);
	KUNIT_EXPECT_FALSE(test, ferry_may_gain(&folios));
	add_folio(test, &folios, order);
	KUNIT_EXPECT_TRUE(test, ferry_may_gain(&folios));
	KUNIT_EXPECT_FALSE(test, ferry_list_full(1, FERRY_STOCK_PAGES));
	free_folios(&folios);
	INIT_LIST_HEAD(&folios);
	add_folio(test, &folios, order);
	while (rested < 1000 && !ferry_may_gain(&folios))
		rested++;
	KUNIT_EXPECT_GT(test, rested, 15);
	KUNIT_EXPECT_LT(test, rested, 1000);
	migrate_enable();
	free_folios(&folios);
	ferry_rates_forget(MR_SYSCALL);
}

/* A list that is larger than without a migrator is never migrated without. */
static void rest_excludes_large_lists(struct kunit *test)
{
	unsigned int i, order = min(MAX_PAGE_ORDER, 9);
	unsigned long min = ferry_batch_min_bytes;
	struct ferry_batch *batch;
	LIST_HEAD(folios);

	batch = kunit_kzalloc(test, sizeof(*batch), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, batch);
	for (i = 0; i <= FERRY_STOCK_PAGES >> order; i++)
		add_folio(test, &folios, order);
	batch->serial = true;
	batch->bytes = FERRY_STOCK_BYTES;
	ferry_gained_nothing(batch);
	KUNIT_EXPECT_TRUE(test, ferry_may_gain(&folios));
	WRITE_ONCE(ferry_batch_min_bytes, SZ_1G);
	KUNIT_EXPECT_TRUE(test, ferry_may_gain(&folios));
	WRITE_ONCE(ferry_batch_min_bytes, min);
	free_folios(&folios);
	ferry_rates_forget(MR_SYSCALL);
}

/* Neither nodes nor reasons make the batches of others larger. */
static void limit_is_of_reason_and_nodes(struct kunit *test)
{
	if (nr_node_ids < 2)
		kunit_skip(test, "one node");
	ferry_rate_update(MR_SYSCALL, 0, 1, SZ_1G, NSEC_PER_USEC);
	KUNIT_EXPECT_GT(test, ferry_limit_of(MR_SYSCALL, 0, 1),
			FERRY_STOCK_BYTES);
	KUNIT_EXPECT_EQ(test, ferry_limit_of(MR_SYSCALL, 1, 0),
			FERRY_STOCK_BYTES);
	KUNIT_EXPECT_EQ(test, ferry_limit_of(MR_DEMOTION, 0, 1),
			FERRY_STOCK_BYTES);
	ferry_rates_forget(MR_DEMOTION);
	KUNIT_EXPECT_GT(test, ferry_limit_of(MR_SYSCALL, 0, 1),
			FERRY_STOCK_BYTES);
	ferry_rates_forget(MR_SYSCALL);
	KUNIT_EXPECT_EQ(test, ferry_limit_of(MR_SYSCALL, 0, 1),
			FERRY_STOCK_BYTES);
}

/* A batch that its time ended limits the next ones of its reason. */
static void limit_follows_time(struct kunit *test)
{
	int nid = first_memory_node;
	unsigned long limit;
	unsigned int i;

	ferry_rate_update(MR_SYSCALL, nid, nid, SZ_1G, NSEC_PER_USEC);
	limit = ferry_limit_of(MR_SYSCALL, nid, nid);
	ferry_fits_update(MR_SYSCALL, SZ_1M, true);
	KUNIT_EXPECT_EQ(test, ferry_limit_of(MR_SYSCALL, nid, nid),
			SZ_1M + SZ_128K + 1);
	KUNIT_EXPECT_EQ(test, ferry_limit_of(MR_DEMOTION, nid, nid),
			FERRY_STOCK_BYTES);
	/* A batch that was in time proves something only if it was as large. */
	ferry_fits_update(MR_SYSCALL, SZ_1M, false);
	KUNIT_EXPECT_EQ(test, ferry_limit_of(MR_SYSCALL, nid, nid),
			SZ_1M + SZ_128K + 1);
	ferry_fits_update(MR_SYSCALL, SZ_2M, false);
	KUNIT_EXPECT_EQ(test, ferry_limit_of(MR_SYSCALL, nid, nid),
			2 * (SZ_1M + SZ_128K + 1));
	/* Enough for several CPUs, even if not a single folio was unmapped. */
	ferry_fits_update(MR_SYSCALL, 0, true);
	KUNIT_EXPECT_EQ(test, ferry_limit_of(MR_SYSCALL, nid, nid),
			FERRY_SHARED_BYTES);
	for (i = 0; i < BITS_PER_LONG; i++)
		ferry_fits_update(MR_SYSCALL, ULONG_MAX, false);
	KUNIT_EXPECT_EQ(test, ferry_limit_of(MR_SYSCALL, nid, nid), limit);
	ferry_rates_forget(MR_SYSCALL);
}

/* The list of migrate_pages() is bounded by folios and bytes. */
static void list_is_bounded(struct kunit *test)
{
	unsigned long max_bytes = READ_ONCE(ferry_batch_max_bytes);
	unsigned long pages = max(max_bytes, FERRY_STOCK_BYTES) >> PAGE_SHIFT;

	KUNIT_ASSERT_EQ(test, ferry_register(&select_migrator), 0);
	KUNIT_EXPECT_EQ(test, ferry_select(FERRY_DEFAULT, "kunit"), 0);
	KUNIT_EXPECT_FALSE(test, batch_full(1, pages - 1));
	KUNIT_EXPECT_TRUE(test, batch_full(1, pages));
	KUNIT_EXPECT_FALSE(test, batch_full(FERRY_LOCKED_FOLIOS - 1,
					    FERRY_LOCKED_FOLIOS - 1));
	KUNIT_EXPECT_TRUE(test, batch_full(FERRY_LOCKED_FOLIOS,
					   FERRY_LOCKED_FOLIOS));
	KUNIT_EXPECT_EQ(test, ferry_select(MR_SYSCALL, "kernel"), 0);
	KUNIT_EXPECT_TRUE(test, batch_full(1, pages - 1));
	KUNIT_EXPECT_EQ(test, ferry_select(MR_SYSCALL, "inherit"), 0);
	KUNIT_EXPECT_EQ(test, ferry_select(FERRY_DEFAULT, "off"), 0);
	ferry_unregister(&select_migrator);
}

static struct kunit_case select_cases[] = {
	KUNIT_CASE(select_words),
	KUNIT_CASE(register_bad_names),
	KUNIT_CASE(register_twice),
	KUNIT_CASE(unregister_selected),
	KUNIT_CASE(limit_follows_rate),
	KUNIT_CASE(limit_resets_when_serial),
	KUNIT_CASE(limit_is_of_reason_and_nodes),
	KUNIT_CASE(limit_follows_time),
	KUNIT_CASE(rests_without_gain),
	KUNIT_CASE(small_rests_alone),
	KUNIT_CASE(rest_excludes_large_lists),
	KUNIT_CASE(list_is_bounded),
	{}
};

static struct kunit_suite select_suite = {
	.name = "ferry_select",
	.test_cases = select_cases,
};

kunit_test_suite(select_suite);
