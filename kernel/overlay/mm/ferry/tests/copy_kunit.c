// SPDX-License-Identifier: GPL-2.0
/*
 * The copy phase, called as by mm/migrate.c, with a migrator of the test's own:
 * it marks each folio that was copied and no other, and counts every folio
 * once.
 */

#include <kunit/test.h>
#include <linux/highmem.h>
#include <linux/io.h>
#include <linux/kasan-enabled.h>
#include <linux/kasan-tags.h>
#include <linux/mm.h>
#include <linux/sizes.h>
#include <linux/string.h>

#include "../internal.h"

#define COPY_FOLIOS	(FERRY_BATCH_FOLIOS + 40)

static struct {
	unsigned int calls;
	unsigned int folios;
	unsigned int fail_every;	/* fail every Nth pair */
	int reject;			/* errno of the whole batch */
	bool serial;			/* set batch->serial */
	bool by_data;			/* copy as a DMA engine does */
} copy_seen;

/* Without copy_highpage(), and without the pages' KASAN tags. */
static int copy_data(struct folio *dst, struct folio *src)
{
	memcpy(phys_to_virt(folio_pfn(dst) << PAGE_SHIFT),
	       phys_to_virt(folio_pfn(src) << PAGE_SHIFT), folio_size(src));
	return 0;
}

static int copy_test_copy(struct ferry_batch *batch)
{
	unsigned int i;

	copy_seen.calls++;
	if (copy_seen.reject)
		return copy_seen.reject;
	batch->serial = copy_seen.serial;
	for (i = 0; i < batch->nr; i++) {
		struct ferry_pair *pair = &batch->pairs[i];

		copy_seen.folios++;
		pair->status = -EHWPOISON;
		if (copy_seen.fail_every &&
		    copy_seen.folios % copy_seen.fail_every == 0)
			continue;
		if (copy_seen.by_data)
			pair->status = copy_data(pair->dst, pair->src);
		else
			pair->status = folio_mc_copy(pair->dst, pair->src);
	}
	return 0;
}

static const struct ferry_migrator copy_test_migrator = {
	.name = "kunit",
	.copy = copy_test_copy,
};

struct copy_ctx {
	struct list_head src;
	struct list_head dst;
};

static void copy_free(struct list_head *folios)
{
	struct folio *folio, *next;

	list_for_each_entry_safe(folio, next, folios, lru) {
		list_del(&folio->lru);
		folio->migrate_info = 0;
		folio_put(folio);
	}
}

static void copy_add(struct kunit *test, struct list_head *folios, u8 fill)
{
	struct folio *folio = folio_alloc(GFP_KERNEL, 0);

	KUNIT_ASSERT_NOT_NULL(test, folio);
	memset(folio_address(folio), fill, folio_size(folio));
	folio->migrate_info = 0;
	list_add_tail(&folio->lru, folios);
}

static void copy_fill(struct kunit *test, unsigned int nr)
{
	struct copy_ctx *ctx = test->priv;
	unsigned int i;

	for (i = 0; i < nr; i++) {
		copy_add(test, &ctx->src, i % 255 + 1);
		copy_add(test, &ctx->dst, 0);
	}
}

static int copy_init(struct kunit *test)
{
	struct copy_ctx *ctx = kunit_kzalloc(test, sizeof(*ctx), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, ctx);
	INIT_LIST_HEAD(&ctx->src);
	INIT_LIST_HEAD(&ctx->dst);
	test->priv = ctx;
	memset(&copy_seen, 0, sizeof(copy_seen));
	KUNIT_ASSERT_EQ(test, ferry_register(&copy_test_migrator), 0);
	KUNIT_ASSERT_EQ(test, ferry_select(FERRY_DEFAULT, "kunit"), 0);
	return 0;
}

static void copy_exit(struct kunit *test)
{
	struct copy_ctx *ctx = test->priv;

	KUNIT_EXPECT_EQ(test, ferry_select(FERRY_DEFAULT, "off"), 0);
	ferry_unregister(&copy_test_migrator);
	copy_free(&ctx->src);
	copy_free(&ctx->dst);
}

/* Run the copy phase. Return how many destinations it marked as complete. */
static unsigned int copy_run(struct kunit *test)
{
	const struct ferry_gather gather = { .active = true };
	struct copy_ctx *ctx = test->priv;
	struct folio *src, *dst;
	unsigned int marked = 0;

	ferry_copy_folios(&gather, &ctx->src, &ctx->dst, MR_SYSCALL);
	src = list_first_entry(&ctx->src, struct folio, lru);
	list_for_each_entry(dst, &ctx->dst, lru) {
		if (dst->migrate_info & FERRY_FOLIO_COPIED) {
			marked++;
			KUNIT_EXPECT_MEMEQ(test, folio_address(dst),
					   folio_address(src), PAGE_SIZE);
		}
		src = list_next_entry(src, lru);
	}
	return marked;
}

static s64 copy_stat(enum ferry_stat stat)
{
	int idx = srcu_read_lock(&ferry_srcu);
	struct ferry_entry *entry = ferry_selected(MR_SYSCALL);
	s64 value = atomic64_read(&entry->stats[MR_SYSCALL].counts[stat]);

	srcu_read_unlock(&ferry_srcu, idx);
	return value;
}

static void copy_marks_all(struct kunit *test)
{
	copy_fill(test, 64);
	KUNIT_EXPECT_EQ(test, copy_run(test), 64);
	KUNIT_EXPECT_EQ(test, copy_stat(FERRY_FOLIOS), 64);
	KUNIT_EXPECT_EQ(test, copy_stat(FERRY_BYTES), 64 * PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, copy_stat(FERRY_BATCHES), 1);
}

/* A list that is longer than a batch is copied in several batches. */
static void copy_long_lists(struct kunit *test)
{
	copy_fill(test, COPY_FOLIOS);
	KUNIT_EXPECT_EQ(test, copy_run(test), COPY_FOLIOS);
	KUNIT_EXPECT_EQ(test, copy_seen.calls, 2);
}

/* The copy phase leaves only the folios that failed to the move phase. */
static void copy_failure_is_not_marked(struct kunit *test)
{
	copy_seen.fail_every = 4;
	copy_fill(test, 64);
	KUNIT_EXPECT_EQ(test, copy_run(test), 48);
	KUNIT_EXPECT_EQ(test, copy_stat(FERRY_FOLIOS), 48);
	KUNIT_EXPECT_EQ(test, copy_stat(FERRY_FALLBACKS), 16);
}

static void copy_rejected_batch(struct kunit *test)
{
	copy_seen.reject = -EBUSY;
	copy_fill(test, 64);
	KUNIT_EXPECT_EQ(test, copy_run(test), 0);
	KUNIT_EXPECT_EQ(test, copy_seen.calls, 1);
	KUNIT_EXPECT_EQ(test, copy_stat(FERRY_REJECTED), 1);
}

/* After one CPU copied a batch, rejected or serial, the next is no larger. */
static void copy_by_one_cpu_resets_rate(struct kunit *test)
{
	struct copy_ctx *ctx = test->priv;
	int from, to;

	copy_fill(test, FERRY_BATCH_FOLIOS);
	from = folio_nid(list_first_entry(&ctx->src, struct folio, lru));
	to = folio_nid(list_first_entry(&ctx->dst, struct folio, lru));
	ferry_rate_update(MR_SYSCALL, from, to, SZ_1G, NSEC_PER_USEC);
	copy_seen.reject = -EBUSY;
	KUNIT_EXPECT_EQ(test, copy_run(test), 0);
	KUNIT_EXPECT_EQ(test, ferry_rate(MR_SYSCALL, from, to), 0);
	ferry_rate_update(MR_SYSCALL, from, to, SZ_1G, NSEC_PER_USEC);
	copy_seen.reject = 0;
	copy_seen.serial = true;
	KUNIT_EXPECT_EQ(test, copy_run(test), FERRY_BATCH_FOLIOS);
	KUNIT_EXPECT_EQ(test, ferry_rate(MR_SYSCALL, from, to), 0);
}

static void copy_small_batch(struct kunit *test)
{
	if (PAGE_SIZE >= SZ_64K)
		kunit_skip(test, "one page is not a small batch");
	copy_fill(test, 1);
	KUNIT_EXPECT_EQ(test, copy_run(test), 0);
	KUNIT_EXPECT_EQ(test, copy_seen.calls, 0);
	KUNIT_EXPECT_EQ(test, copy_stat(FERRY_SKIPPED_SMALL), 1);
}

/* Source and destination stay paired across a folio that is skipped. */
static void copy_skips_pinned(struct kunit *test)
{
	struct copy_ctx *ctx = test->priv;
	struct folio *pinned;

	copy_fill(test, 64);
	pinned = list_first_entry(&ctx->src, struct folio, lru);
	pinned = list_next_entry(pinned, lru);
	folio_get(pinned);
	KUNIT_EXPECT_EQ(test, copy_run(test), 63);
	KUNIT_EXPECT_EQ(test, copy_stat(FERRY_SKIPPED_PINNED), 1);
	folio_put(pinned);
}

static void copy_off_does_nothing(struct kunit *test)
{
	copy_fill(test, 64);
	KUNIT_ASSERT_EQ(test, ferry_select(FERRY_DEFAULT, "off"), 0);
	KUNIT_EXPECT_EQ(test, copy_run(test), 0);
	KUNIT_EXPECT_EQ(test, copy_seen.calls, 0);
}

/* If all batches are in use, the move phase copies the folios. */
static void copy_no_batch_left(struct kunit *test)
{
	struct ferry_batch *batches[64];
	unsigned int nr = 0;

	copy_fill(test, 64);
	while (nr < ARRAY_SIZE(batches)) {
		batches[nr] = ferry_batch_get();
		if (!batches[nr])
			break;
		nr++;
	}
	KUNIT_EXPECT_GT(test, nr, 0);
	KUNIT_EXPECT_EQ(test, copy_run(test), 0);
	KUNIT_EXPECT_EQ(test, copy_stat(FERRY_SKIPPED_NO_BUFFER), 1);
	while (nr--)
		ferry_batch_put(batches[nr]);
	KUNIT_EXPECT_EQ(test, copy_run(test), 64);
}

/*
 * The allocator gave the destinations random tags, as it does to those of
 * compaction. On a machine with MTE, copy_run() compares through them.
 */
static void copy_resets_kasan_tags(struct kunit *test)
{
	struct copy_ctx *ctx = test->priv;
	unsigned int tagged = 0;
	struct folio *dst;

	if (!kasan_hw_tags_enabled())
		kunit_skip(test, "needs CONFIG_KASAN_HW_TAGS and MTE");
	copy_seen.by_data = true;
	copy_fill(test, 64);
	list_for_each_entry(dst, &ctx->dst, lru)
		tagged += page_kasan_tag(&dst->page) != KASAN_TAG_KERNEL;
	KUNIT_EXPECT_GT(test, tagged, 0);
	KUNIT_EXPECT_EQ(test, copy_run(test), 64);
	list_for_each_entry(dst, &ctx->dst, lru)
		KUNIT_EXPECT_EQ(test, page_kasan_tag(&dst->page),
				KASAN_TAG_KERNEL);
}

static struct kunit_case copy_cases[] = {
	KUNIT_CASE(copy_marks_all),
	KUNIT_CASE(copy_long_lists),
	KUNIT_CASE(copy_failure_is_not_marked),
	KUNIT_CASE(copy_rejected_batch),
	KUNIT_CASE(copy_by_one_cpu_resets_rate),
	KUNIT_CASE(copy_small_batch),
	KUNIT_CASE(copy_skips_pinned),
	KUNIT_CASE(copy_off_does_nothing),
	KUNIT_CASE(copy_no_batch_left),
	KUNIT_CASE(copy_resets_kasan_tags),
	{}
};

static struct kunit_suite copy_suite = {
	.name = "ferry_copy",
	.init = copy_init,
	.exit = copy_exit,
	.test_cases = copy_cases,
};

kunit_test_suite(copy_suite);
