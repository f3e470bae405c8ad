// SPDX-License-Identifier: GPL-2.0
/*
 * The eligibility of folios for the early copy. Each case tests one line of the
 * argument at the top of mm/ferry/batch.c: without that check the case fails.
 */

#include <kunit/test.h>
#include <linux/buffer_head.h>
#include <linux/fs.h>
#include <linux/migrate.h>
#include <linux/mm.h>
#include <linux/pagemap.h>

#include "../internal.h"

struct eligible_ctx {
	struct folio *src;
	struct folio *dst;
	struct inode inode;
	struct address_space mapping;
};

static int other_migrate_folio(struct address_space *mapping, struct folio *dst,
			       struct folio *src, enum migrate_mode mode)
{
	return -EOPNOTSUPP;
}

static const struct address_space_operations plain_ops = {
	.migrate_folio = migrate_folio,
};

static const struct address_space_operations filemap_ops = {
	.migrate_folio = filemap_migrate_folio,
};

static const struct address_space_operations other_ops = {
	.migrate_folio = other_migrate_folio,
};

static const struct address_space_operations no_ops = {
};

static int eligible_init(struct kunit *test)
{
	struct eligible_ctx *ctx;

	ctx = kunit_kzalloc(test, sizeof(*ctx), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ctx);
	test->priv = ctx;
	ctx->mapping.host = &ctx->inode;
	ctx->src = folio_alloc(GFP_KERNEL, 0);
	ctx->dst = folio_alloc(GFP_KERNEL, 0);
	KUNIT_ASSERT_NOT_NULL(test, ctx->src);
	KUNIT_ASSERT_NOT_NULL(test, ctx->dst);
	return 0;
}

static void eligible_exit(struct kunit *test)
{
	struct eligible_ctx *ctx = test->priv;

	if (ctx && ctx->src) {
		ctx->src->mapping = NULL;
		folio_put(ctx->src);
	}
	if (ctx && ctx->dst)
		folio_put(ctx->dst);
}

/* Give the source a mapping with @ops, and the page cache's reference. */
static void eligible_map(struct eligible_ctx *ctx,
			 const struct address_space_operations *ops)
{
	ctx->mapping.a_ops = ops;
	ctx->src->mapping = &ctx->mapping;
	folio_get(ctx->src);
}

static void eligible_unmap(struct eligible_ctx *ctx)
{
	ctx->src->mapping = NULL;
	folio_put(ctx->src);
}

static void expect_skipped(struct kunit *test, enum ferry_stat reason)
{
	struct eligible_ctx *ctx = test->priv;
	enum ferry_stat got = FERRY_NR_STATS;

	KUNIT_EXPECT_FALSE(test, ferry_eligible(ctx->dst, ctx->src, &got));
	KUNIT_EXPECT_EQ(test, got, reason);
}

static void expect_eligible(struct kunit *test)
{
	struct eligible_ctx *ctx = test->priv;
	enum ferry_stat got = FERRY_NR_STATS;

	KUNIT_EXPECT_TRUE(test, ferry_eligible(ctx->dst, ctx->src, &got));
}

static void eligible_anon(struct kunit *test)
{
	expect_eligible(test);
}

static void eligible_page_cache(struct kunit *test)
{
	struct eligible_ctx *ctx = test->priv;

	eligible_map(ctx, &plain_ops);
	expect_eligible(test);
	ctx->mapping.a_ops = &filemap_ops;
	expect_eligible(test);
	eligible_unmap(ctx);
}

/* A file system may write to its device's page cache without the folio lock. */
static void skipped_block_device(struct kunit *test)
{
	struct eligible_ctx *ctx = test->priv;

	eligible_map(ctx, &filemap_ops);
	ctx->inode.i_mode = S_IFBLK;
	expect_skipped(test, FERRY_SKIPPED_UNSUPPORTED);
	eligible_unmap(ctx);
}

static void skipped_unknown_callback(struct kunit *test)
{
	struct eligible_ctx *ctx = test->priv;

	eligible_map(ctx, &other_ops);
	expect_skipped(test, FERRY_SKIPPED_UNSUPPORTED);
	ctx->mapping.a_ops = &no_ops;
	expect_skipped(test, FERRY_SKIPPED_UNSUPPORTED);
	eligible_unmap(ctx);
}

/* The kernel may not read such content, with any callback. */
static void skipped_inaccessible(struct kunit *test)
{
	struct eligible_ctx *ctx = test->priv;

	eligible_map(ctx, &plain_ops);
	mapping_set_inaccessible(&ctx->mapping);
	expect_skipped(test, FERRY_SKIPPED_UNSUPPORTED);
	eligible_unmap(ctx);
}

/* A transfer may write to a buffer that is locked. */
static void skipped_locked_buffers(struct kunit *test)
{
#ifdef CONFIG_BUFFER_HEAD
	static const struct address_space_operations buffer_ops = {
		.migrate_folio = buffer_migrate_folio,
	};
	struct eligible_ctx *ctx = test->priv;
	struct buffer_head bh[2] = {
		{ .b_this_page = &bh[1] }, { .b_this_page = &bh[0] },
	};

	eligible_map(ctx, &buffer_ops);
	expect_eligible(test);
	folio_attach_private(ctx->src, bh);
	expect_eligible(test);
	set_buffer_locked(&bh[1]);
	expect_skipped(test, FERRY_SKIPPED_UNSUPPORTED);
	clear_buffer_locked(&bh[1]);
	expect_eligible(test);
	folio_detach_private(ctx->src);
	eligible_unmap(ctx);
#else
	kunit_skip(test, "no CONFIG_BUFFER_HEAD");
#endif
}

/* Other code may find these buffers without the folio lock. */
static void skipped_norefs(struct kunit *test)
{
#ifdef CONFIG_BUFFER_HEAD
	static const struct address_space_operations norefs_ops = {
		.migrate_folio = buffer_migrate_folio_norefs,
	};
	struct eligible_ctx *ctx = test->priv;

	eligible_map(ctx, &norefs_ops);
	expect_skipped(test, FERRY_SKIPPED_UNSUPPORTED);
	eligible_unmap(ctx);
#else
	kunit_skip(test, "no CONFIG_BUFFER_HEAD");
#endif
}

/* hugetlb and movable_ops folios have a page type; the test uses slab's. */
static void skipped_typed(struct kunit *test)
{
	struct eligible_ctx *ctx = test->priv;

	__folio_set_slab(ctx->src);
	expect_skipped(test, FERRY_SKIPPED_UNSUPPORTED);
	__folio_clear_slab(ctx->src);
	expect_eligible(test);
}

static void skipped_pinned(struct kunit *test)
{
	struct eligible_ctx *ctx = test->priv;

	folio_get(ctx->src);
	expect_skipped(test, FERRY_SKIPPED_PINNED);
	folio_put(ctx->src);
	expect_eligible(test);
}

static void skipped_poisoned(struct kunit *test)
{
#ifdef CONFIG_MEMORY_FAILURE
	struct eligible_ctx *ctx = test->priv;

	folio_set_hwpoison(ctx->src);
	expect_skipped(test, FERRY_SKIPPED_UNSUPPORTED);
	folio_test_clear_hwpoison(ctx->src);
	expect_eligible(test);
#else
	kunit_skip(test, "no CONFIG_MEMORY_FAILURE");
#endif
}

static struct kunit_case eligible_cases[] = {
	KUNIT_CASE(eligible_anon),
	KUNIT_CASE(eligible_page_cache),
	KUNIT_CASE(skipped_block_device),
	KUNIT_CASE(skipped_unknown_callback),
	KUNIT_CASE(skipped_inaccessible),
	KUNIT_CASE(skipped_locked_buffers),
	KUNIT_CASE(skipped_norefs),
	KUNIT_CASE(skipped_typed),
	KUNIT_CASE(skipped_pinned),
	KUNIT_CASE(skipped_poisoned),
	{}
};

static struct kunit_suite eligible_suite = {
	.name = "ferry_eligible",
	.init = eligible_init,
	.exit = eligible_exit,
	.test_cases = eligible_cases,
};

kunit_test_suite(eligible_suite);
