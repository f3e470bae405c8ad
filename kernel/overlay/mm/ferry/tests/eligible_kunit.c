// SPDX-License-Identifier: GPL-2.0
/*
 * Which folios may be copied before the move phase. Each case is one line of the argument
 * at the top of mm/ferry/batch.c: take the check out and the case fails.
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
	struct eligible_ctx *ctx = kunit_kzalloc(test, sizeof(*ctx), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, ctx);
	test->priv = ctx;
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

static void expect_refused(struct kunit *test, enum ferry_stat cause)
{
	struct eligible_ctx *ctx = test->priv;
	enum ferry_stat got = FERRY_NR_STATS;

	KUNIT_EXPECT_FALSE(test, ferry_eligible(ctx->dst, ctx->src, &got));
	KUNIT_EXPECT_EQ(test, got, cause);
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

static void refused_unknown_callback(struct kunit *test)
{
	struct eligible_ctx *ctx = test->priv;

	eligible_map(ctx, &other_ops);
	expect_refused(test, FERRY_REFUSED_KIND);
	ctx->mapping.a_ops = &no_ops;
	expect_refused(test, FERRY_REFUSED_KIND);
	eligible_unmap(ctx);
}

/* Such content is not the kernel's to read, whatever the callback. */
static void refused_inaccessible(struct kunit *test)
{
	struct eligible_ctx *ctx = test->priv;

	eligible_map(ctx, &plain_ops);
	mapping_set_inaccessible(&ctx->mapping);
	expect_refused(test, FERRY_REFUSED_KIND);
	eligible_unmap(ctx);
}

static void refused_buffers(struct kunit *test)
{
#ifdef CONFIG_BUFFER_HEAD
	static const struct address_space_operations buffer_ops = {
		.migrate_folio = buffer_migrate_folio,
	};
	static const struct address_space_operations norefs_ops = {
		.migrate_folio = buffer_migrate_folio_norefs,
	};
	struct eligible_ctx *ctx = test->priv;

	eligible_map(ctx, &buffer_ops);
	expect_refused(test, FERRY_REFUSED_KIND);
	ctx->mapping.a_ops = &norefs_ops;
	expect_refused(test, FERRY_REFUSED_KIND);
	eligible_unmap(ctx);
#else
	kunit_skip(test, "no CONFIG_BUFFER_HEAD");
#endif
}

/* hugetlb, and what has movable_ops, have a page type; any will do. */
static void refused_typed(struct kunit *test)
{
	struct eligible_ctx *ctx = test->priv;

	__folio_set_slab(ctx->src);
	expect_refused(test, FERRY_REFUSED_KIND);
	__folio_clear_slab(ctx->src);
	expect_eligible(test);
}

static void refused_pinned(struct kunit *test)
{
	struct eligible_ctx *ctx = test->priv;

	folio_get(ctx->src);
	expect_refused(test, FERRY_REFUSED_PINNED);
	folio_put(ctx->src);
	expect_eligible(test);
}

static void refused_poisoned(struct kunit *test)
{
#ifdef CONFIG_MEMORY_FAILURE
	struct eligible_ctx *ctx = test->priv;

	folio_set_hwpoison(ctx->src);
	expect_refused(test, FERRY_REFUSED_KIND);
	folio_test_clear_hwpoison(ctx->src);
	expect_eligible(test);
#else
	kunit_skip(test, "no CONFIG_MEMORY_FAILURE");
#endif
}

static struct kunit_case eligible_cases[] = {
	KUNIT_CASE(eligible_anon),
	KUNIT_CASE(eligible_page_cache),
	KUNIT_CASE(refused_unknown_callback),
	KUNIT_CASE(refused_inaccessible),
	KUNIT_CASE(refused_buffers),
	KUNIT_CASE(refused_typed),
	KUNIT_CASE(refused_pinned),
	KUNIT_CASE(refused_poisoned),
	{}
};

static struct kunit_suite eligible_suite = {
	.name = "ferry_eligible",
	.init = eligible_init,
	.exit = eligible_exit,
	.test_cases = eligible_cases,
};

kunit_test_suite(eligible_suite);
