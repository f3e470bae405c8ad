// SPDX-License-Identifier: GPL-2.0
/*
 * Which folios may be copied before the move phase. Each case is one line of the argument
 * at the top of mm/ferry/batch.c: take the check out and the case fails.
 */

#include <kunit/test.h>
#include <linux/fs.h>
#include <linux/migrate.h>
#include <linux/mm.h>
#include <linux/pagemap.h>

#include "../internal.h"

struct eligible_ctx {
	struct folio *src;
	struct folio *dst;
	struct address_space mapping;
	struct address_space_operations a_ops;
};

static int other_migrate_folio(struct address_space *mapping, struct folio *dst,
			       struct folio *src, enum migrate_mode mode)
{
	return -EOPNOTSUPP;
}

static int eligible_init(struct kunit *test)
{
	struct eligible_ctx *ctx = kunit_kzalloc(test, sizeof(*ctx), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, ctx);
	test->priv = ctx;
	ctx->mapping.a_ops = &ctx->a_ops;
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

/* Give the source a mapping whose callback is @migrate, with the page cache's reference. */
static void eligible_map(struct eligible_ctx *ctx,
			 int (*migrate)(struct address_space *mapping,
					struct folio *dst, struct folio *src,
					enum migrate_mode mode))
{
	ctx->a_ops.migrate_folio = migrate;
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

	eligible_map(ctx, migrate_folio);
	expect_eligible(test);
	ctx->a_ops.migrate_folio = filemap_migrate_folio;
	expect_eligible(test);
	eligible_unmap(ctx);
}

static void refused_unknown_callback(struct kunit *test)
{
	struct eligible_ctx *ctx = test->priv;

	eligible_map(ctx, other_migrate_folio);
	expect_refused(test, FERRY_REFUSED_KIND);
	ctx->a_ops.migrate_folio = NULL;
	expect_refused(test, FERRY_REFUSED_KIND);
	eligible_unmap(ctx);
}

static void refused_buffers(struct kunit *test)
{
#ifdef CONFIG_BUFFER_HEAD
	struct eligible_ctx *ctx = test->priv;

	eligible_map(ctx, buffer_migrate_folio);
	expect_refused(test, FERRY_REFUSED_KIND);
	ctx->a_ops.migrate_folio = buffer_migrate_folio_norefs;
	expect_refused(test, FERRY_REFUSED_KIND);
	eligible_unmap(ctx);
#else
	kunit_skip(test, "no CONFIG_BUFFER_HEAD");
#endif
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
	KUNIT_CASE(refused_buffers),
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
