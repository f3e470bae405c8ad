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
	ferry_list(buf);
	KUNIT_EXPECT_NOT_NULL_MSG(test, strstr(buf, word), "%s not in %s",
				  word, buf);
	free_page((unsigned long)buf);
}

static void select_words(struct kunit *test)
{
	expect_list(test, "[off]");
	KUNIT_EXPECT_EQ(test, ferry_select("kernel\n"), 0);
	expect_list(test, "[kernel]");
	KUNIT_EXPECT_EQ(test, ferry_select("unknown"), -EINVAL);
	KUNIT_EXPECT_EQ(test, ferry_select(""), -EINVAL);
	expect_list(test, "[kernel]");
	KUNIT_EXPECT_EQ(test, ferry_select("off"), 0);
	expect_list(test, "[off]");
}

/* "reserved" stands for a directory that is no migrator's, as that of migrc. */
static void register_bad_names(struct kunit *test)
{
	static const char * const names[] = {
		"", "off", "stats", "reserved", "migrator", "batch_min_bytes",
		"a b", "a/b", "[a]",
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
	KUNIT_EXPECT_EQ(test, ferry_select("kunit"), 0);
	expect_list(test, "[kunit]");
	ferry_unregister(&select_migrator);
	expect_list(test, "[kernel]");
	KUNIT_EXPECT_EQ(test, ferry_select("off"), 0);
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
	struct ferry_entry entry = {};
	struct ferry_batch *batch;

	batch = kunit_kzalloc(test, sizeof(*batch), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, batch);
	KUNIT_EXPECT_TRUE(test, __ferry_batch_full(1, FERRY_STOCK_PAGES));
	ferry_rate_update(&entry, SZ_1G, NSEC_PER_USEC);
	ferry_rate_update(&entry, SZ_1G, NSEC_PER_USEC);
	KUNIT_EXPECT_EQ(test, entry.rate, SZ_1G);
	/* A batch that is too small to be shared changes nothing. */
	batch->bytes = (FERRY_BATCH_FOLIOS - 1) * PAGE_SIZE;
	ferry_rate_reset(&entry, batch);
	KUNIT_EXPECT_EQ(test, entry.rate, SZ_1G);
	batch->bytes = FERRY_BATCH_FOLIOS * PAGE_SIZE;
	ferry_rate_reset(&entry, batch);
	KUNIT_EXPECT_EQ(test, entry.rate, 0);
	KUNIT_EXPECT_TRUE(test, __ferry_batch_full(1, FERRY_STOCK_PAGES + 1));
	ferry_limit_update(NULL);
}

/* Split folios are cut to as many as one batch may lock; when off, not cut. */
static void cut_bounds_folios(struct kunit *test)
{
	unsigned int i, nr = FERRY_LOCKED_FOLIOS + 10;
	struct folio *folio, *next;
	LIST_HEAD(folios);
	LIST_HEAD(batch);

	for (i = 0; i < nr; i++) {
		folio = folio_alloc(GFP_KERNEL, 0);
		KUNIT_ASSERT_NOT_NULL(test, folio);
		list_add_tail(&folio->lru, &folios);
	}
	__ferry_cut_batch(&folios, &batch);
	KUNIT_EXPECT_EQ(test, list_count_nodes(&batch), FERRY_LOCKED_FOLIOS);
	KUNIT_EXPECT_EQ(test, list_count_nodes(&folios),
			nr - FERRY_LOCKED_FOLIOS);
	list_splice_init(&batch, &folios);
	ferry_cut_batch(&folios, &batch);
	KUNIT_EXPECT_EQ(test, list_count_nodes(&batch), nr);
	KUNIT_EXPECT_TRUE(test, list_empty(&folios));
	list_for_each_entry_safe(folio, next, &batch, lru)
		folio_put(folio);
}

static struct kunit_case select_cases[] = {
	KUNIT_CASE(select_words),
	KUNIT_CASE(register_bad_names),
	KUNIT_CASE(register_twice),
	KUNIT_CASE(unregister_selected),
	KUNIT_CASE(limit_follows_rate),
	KUNIT_CASE(limit_resets_when_serial),
	KUNIT_CASE(cut_bounds_folios),
	{}
};

static struct kunit_suite select_suite = {
	.name = "ferry_select",
	.test_cases = select_cases,
};

kunit_test_suite(select_suite);
