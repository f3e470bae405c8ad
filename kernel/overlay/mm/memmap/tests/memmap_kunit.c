// SPDX-License-Identifier: GPL-2.0
/*
 * A struct page from a template is, to the last byte, what the slow path makes of it: for
 * every type, order, way to write and edge. The comparison itself is tested too: it must see
 * a change in any word of a template.
 *
 * The struct pages lie in an array of the test's own, and stand for PFNs that nobody has.
 */

#include <kunit/test.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/pageblock-flags.h>
#include <linux/vmalloc.h>

#include "../internal.h"

/* 4 TiB: beyond the memory of any machine that runs unit tests, within every sparse map. */
#define TEST_PFN	BIT(30)
#define UNTOUCHED	0xa5

struct memmap_case {
	const char *name;
	enum memory_type type;
	unsigned int order;
	unsigned long start;	/* from TEST_PFN */
	unsigned long nr;
	unsigned long compound_nr;	/* struct pages of each compound; 0: all */
};

#define BLOCK	pageblock_nr_pages
#define SECTION	PAGES_PER_SECTION

static const struct memmap_case memmap_cases[] = {
	{ "private", MEMORY_DEVICE_PRIVATE, 0, 0, 3 * 512 },
	{ "coherent", MEMORY_DEVICE_COHERENT, 0, 0, 3 * 512 },
	{ "fsdax", MEMORY_DEVICE_FS_DAX, 0, 0, 3 * 512 },
	{ "generic", MEMORY_DEVICE_GENERIC, 0, 0, 3 * 512 },
	{ "p2pdma", MEMORY_DEVICE_PCI_P2PDMA, 0, 0, 3 * 512 },
	{ "two pages", MEMORY_DEVICE_FS_DAX, 0, 0, 2 },
	{ "just before a pageblock", MEMORY_DEVICE_FS_DAX, 0, 511, 514 },
	{ "just behind a pageblock", MEMORY_DEVICE_FS_DAX, 0, 1, 1022 },
	{ "across a section", MEMORY_DEVICE_GENERIC, 0, SECTION - 700, 1500 },
	{ "private compounds", MEMORY_DEVICE_PRIVATE, 9, 0, 4 * 512 },
	{ "coherent compounds", MEMORY_DEVICE_COHERENT, 9, 0, 4 * 512 },
	{ "devdax compounds", MEMORY_DEVICE_GENERIC, 9, 0, 4 * 512 },
	{ "fsdax compounds", MEMORY_DEVICE_FS_DAX, 9, 0, 4 * 512 },
	{ "p2pdma compounds", MEMORY_DEVICE_PCI_P2PDMA, 9, 0, 4 * 512 },
	{ "compounds without most tails", MEMORY_DEVICE_GENERIC, 9, 0, 4 * 512, 128 },
	{ "compounds across a section", MEMORY_DEVICE_GENERIC, 9, SECTION - 1024, 2048 },
	{ "smallest compounds", MEMORY_DEVICE_GENERIC, 4, 0, 256 },
	{ "1 GiB compounds", MEMORY_DEVICE_GENERIC, 18, 0, 2UL << 18 },
	{ "1 GiB compounds without most tails", MEMORY_DEVICE_GENERIC, 18, 0, 2UL << 18, 128 },
};

struct memmap_ctx {
	struct dev_pagemap pgmap;
	struct memmap_range range;
	struct memmap_knobs knobs;
	unsigned long nr;
	unsigned long compound_nr;
	struct page *want;
};

static int memmap_test_init(struct kunit *test)
{
	struct memmap_ctx *ctx = kunit_kzalloc(test, sizeof(*ctx), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, ctx);
	ctx->knobs = memmap_knobs;
	test->priv = ctx;
	return 0;
}

static void memmap_test_exit(struct kunit *test)
{
	struct memmap_ctx *ctx = test->priv;

	if (!ctx)
		return;
	memmap_knobs = ctx->knobs;
	vfree(ctx->range.pages);
	vfree(ctx->want);
}

static void memmap_setup(struct kunit *test, const struct memmap_case *c)
{
	struct memmap_ctx *ctx = test->priv;

	ctx->nr = c->nr;
	ctx->compound_nr = c->compound_nr ?: 1UL << c->order;
	ctx->pgmap.type = c->type;
	ctx->pgmap.vmemmap_shift = c->order;
	ctx->range = (struct memmap_range) {
		.pages = vmalloc_array(c->nr + 1, sizeof(struct page)),
		.start_pfn = TEST_PFN + c->start,
		.end_pfn = TEST_PFN + c->start + c->nr,
		.zone_idx = ZONE_DEVICE,
		.nid = num_possible_nodes() > 1 ? 1 : 0,
		.pgmap = &ctx->pgmap,
	};
	KUNIT_ASSERT_NOT_NULL(test, ctx->range.pages);
}

static size_t memmap_bytes(struct memmap_ctx *ctx)
{
	/* One more than the range: nobody may write to it. */
	return (ctx->nr + 1) * sizeof(struct page);
}

static void memmap_want(struct kunit *test)
{
	struct memmap_ctx *ctx = test->priv;

	ctx->want = vmalloc(memmap_bytes(ctx));
	KUNIT_ASSERT_NOT_NULL(test, ctx->want);
	memset(ctx->range.pages, UNTOUCHED, memmap_bytes(ctx));
	memmap_init_fields(&ctx->range, ctx->range.start_pfn, ctx->range.end_pfn,
			   ctx->compound_nr);
	memcpy(ctx->want, ctx->range.pages, memmap_bytes(ctx));
}

static bool memmap_same(struct memmap_ctx *ctx)
{
	return !memcmp(ctx->want, ctx->range.pages, memmap_bytes(ctx));
}

static void memmap_apply(struct memmap_ctx *ctx, const struct memmap_template *template,
			 enum memmap_method method)
{
	memset(ctx->range.pages, UNTOUCHED, memmap_bytes(ctx));
	memmap_template_apply(&ctx->range, ctx->range.start_pfn, ctx->range.end_pfn,
			      ctx->compound_nr, template, method);
}

static void memmap_test_same(struct kunit *test)
{
	const struct memmap_case *c = test->param_value;
	struct memmap_ctx *ctx = test->priv;
	struct memmap_template template;
	enum memmap_method method;

	memmap_setup(test, c);
	if (!memmap_template_possible(&ctx->range))
		kunit_skip(test, "no template in this kernel");
	memmap_want(test);
	KUNIT_ASSERT_TRUE(test, memmap_template_make(&ctx->range, ctx->range.start_pfn,
						     ctx->range.end_pfn, &template));
	for (method = MEMMAP_CACHED; method < MEMMAP_NR_METHODS; method++) {
		memmap_apply(ctx, &template, method);
		KUNIT_EXPECT_TRUE_MSG(test, memmap_same(ctx), "%s, %s", c->name,
				      memmap_method_names[method]);
	}
}

/* A word of the template that was not right must show: no word is left uncompared. */
static void memmap_test_mutation(struct kunit *test)
{
	struct memmap_ctx *ctx = test->priv;
	struct memmap_template good, bad;
	unsigned long *words = (unsigned long *)&bad;
	unsigned int i, tail_info;

	memmap_setup(test, &memmap_cases[11]);
	if (!memmap_template_possible(&ctx->range))
		kunit_skip(test, "no template in this kernel");
	memmap_want(test);
	KUNIT_ASSERT_TRUE(test, memmap_template_make(&ctx->range, ctx->range.start_pfn,
						     ctx->range.end_pfn, &good));
	tail_info = (offsetof(struct memmap_template, tail) +
		     offsetof(struct page, compound_info)) / sizeof(long);
	for (i = 0; i < sizeof(bad) / sizeof(long); i++) {
		bad = good;
		words[i] ^= 1UL << (7 * i % BITS_PER_LONG);
		memmap_apply(ctx, &bad, MEMMAP_CACHED);
		/* The one word that is refreshed anyway. */
		KUNIT_EXPECT_EQ_MSG(test, memmap_same(ctx), i == tail_info, "word %u", i);
		KUNIT_EXPECT_EQ_MSG(test, memmap_template_right(&ctx->range, ctx->range.start_pfn,
								&bad), i == tail_info,
				    "word %u", i);
	}
}

/* Of another type's pages, a template is wrong, and that is found out. */
static void memmap_test_refused(struct kunit *test)
{
	struct memmap_ctx *ctx = test->priv;
	struct memmap_template template;

	memmap_setup(test, &memmap_cases[0]);
	if (!memmap_template_possible(&ctx->range))
		kunit_skip(test, "no template in this kernel");
	KUNIT_ASSERT_TRUE(test, memmap_template_make(&ctx->range, ctx->range.start_pfn,
						     ctx->range.end_pfn, &template));
	KUNIT_EXPECT_TRUE(test, memmap_template_right(&ctx->range, ctx->range.start_pfn,
						      &template));
	ctx->pgmap.type = MEMORY_DEVICE_GENERIC;
	KUNIT_EXPECT_FALSE(test, memmap_template_right(&ctx->range, ctx->range.start_pfn,
						       &template));
	ctx->pgmap.type = MEMORY_DEVICE_PRIVATE;
	ctx->range.nid = 0;
	KUNIT_EXPECT_EQ(test, num_possible_nodes() == 1,
			memmap_template_right(&ctx->range, ctx->range.start_pfn, &template));
	/* One page has no second to be compared with. */
	KUNIT_EXPECT_FALSE(test, memmap_template_make(&ctx->range, ctx->range.start_pfn,
						      ctx->range.start_pfn + 1, &template));
}

static void memmap_test_chunks(struct kunit *test)
{
	struct memmap_ctx *ctx = test->priv;
	struct memmap_range *range = &ctx->range;

	range->pgmap = &ctx->pgmap;
	range->start_pfn = TEST_PFN;
	range->end_pfn = TEST_PFN + 3 * SECTION + 7;
	KUNIT_EXPECT_EQ(test, memmap_chunk_end(range, TEST_PFN), TEST_PFN + SECTION);
	KUNIT_EXPECT_EQ(test, memmap_chunk_end(range, TEST_PFN + 5), TEST_PFN + SECTION);
	KUNIT_EXPECT_EQ(test, memmap_chunk_end(range, TEST_PFN + SECTION), TEST_PFN + 2 * SECTION);
	KUNIT_EXPECT_EQ(test, memmap_chunk_end(range, TEST_PFN + 3 * SECTION), range->end_pfn);
	ctx->pgmap.vmemmap_shift = 9;
	KUNIT_EXPECT_EQ(test, memmap_chunk_end(range, TEST_PFN), TEST_PFN + SECTION);
	/* A compound that begins in a section belongs to its chunk, wherever it ends. */
	KUNIT_EXPECT_EQ(test, memmap_chunk_end(range, TEST_PFN + 5), TEST_PFN + 5 + SECTION);
	ctx->pgmap.vmemmap_shift = 18;
	range->end_pfn = TEST_PFN + (2UL << 18);
	KUNIT_EXPECT_EQ(test, memmap_chunk_end(range, TEST_PFN), TEST_PFN + (1UL << 18));
}

/* Enough chunks for a contest and for helpers; checked page by page, as two arrays are large. */
static void memmap_test_whole(struct kunit *test)
{
	static const struct memmap_case c = {
		"whole", MEMORY_DEVICE_PRIVATE, 0, 100, 84 * SECTION,
	};
	static const unsigned int methods[] = {
		MEMMAP_FIELDS, MEMMAP_STREAMING, MEMMAP_METHOD_AUTO,
	};
	struct memmap_ctx *ctx = test->priv;
	unsigned long i, wrong = 0;
	unsigned int m;
	struct page want;

	memmap_setup(test, &c);
	memmap_init_fields(&ctx->range, ctx->range.start_pfn, ctx->range.start_pfn + 1, 1);
	want = ctx->range.pages[0];
	memmap_knobs.threads = 4;
	for (m = 0; m < ARRAY_SIZE(methods); m++) {
		memmap_knobs.method = methods[m];
		memset(ctx->range.pages, UNTOUCHED, memmap_bytes(ctx));
		memmap_init_device_range(&ctx->range);
		for (i = 0; i < ctx->nr; i++)
			wrong += !!memcmp(&want, &ctx->range.pages[i], sizeof(want));
		KUNIT_EXPECT_EQ_MSG(test, wrong, 0, "method %u", methods[m]);
		KUNIT_EXPECT_NULL(test, memchr_inv(&ctx->range.pages[ctx->nr], UNTOUCHED,
						   sizeof(want)));
		cond_resched();
	}
}

KUNIT_ARRAY_PARAM_DESC(memmap_case, memmap_cases, name);

static struct kunit_case memmap_test_cases[] = {
	KUNIT_CASE_PARAM(memmap_test_same, memmap_case_gen_params),
	KUNIT_CASE(memmap_test_mutation),
	KUNIT_CASE(memmap_test_refused),
	KUNIT_CASE(memmap_test_chunks),
	KUNIT_CASE(memmap_test_whole),
	{}
};

static struct kunit_suite memmap_suite = {
	.name = "ferry_memmap",
	.init = memmap_test_init,
	.exit = memmap_test_exit,
	.test_cases = memmap_test_cases,
};

kunit_test_suite(memmap_suite);

MODULE_DESCRIPTION("KUnit tests for device memory maps");
MODULE_LICENSE("GPL");
