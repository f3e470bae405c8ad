// SPDX-License-Identifier: GPL-2.0
/*
 * A struct page from a template is, to the last byte, what the slow path makes of it: for
 * every type, order, way to write and edge. The comparison itself is tested too: it must see
 * a change in any word of a template.
 *
 * The struct pages lie in an array of the test's own, and stand for PFNs that nobody has. So
 * no device is needed, and User-Mode Linux, which has none, tests what x86 does not: tails that
 * point to their head, and KASAN.
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

#define SECTION	MEMMAP_CHUNK_PFNS

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
	{ "compounds that begin anywhere", MEMORY_DEVICE_GENERIC, 9, 77, 4 * 512 },
	{ "an incomplete last compound", MEMORY_DEVICE_GENERIC, 9, 0, 3 * 512 + 100 },
	{ "compounds at the end of a section", MEMORY_DEVICE_GENERIC, 9, SECTION - 512, 1024 },
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
	memmap_contest_forget();
}

static size_t memmap_bytes(struct memmap_ctx *ctx)
{
	unsigned long span = 1UL << ctx->pgmap.vmemmap_shift;

	/* The last compound is completed. One more than that: nobody may write to it. */
	return (round_up(ctx->nr, span) + 1) * sizeof(struct page);
}

static const struct memmap_case *memmap_case(const char *name)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(memmap_cases); i++)
		if (!strcmp(memmap_cases[i].name, name))
			return &memmap_cases[i];
	return NULL;
}

/* By design; what is left can be tested there all the same, and its accesses are checked. */
static const bool sanitized = IS_ENABLED(CONFIG_KASAN) || IS_ENABLED(CONFIG_KMSAN) ||
			      IS_ENABLED(CONFIG_KCSAN);

static void memmap_setup(struct kunit *test, const struct memmap_case *c)
{
	struct memmap_ctx *ctx = test->priv;

	ctx->nr = c->nr;
	ctx->compound_nr = c->compound_nr ?: 1UL << c->order;
	ctx->pgmap.type = c->type;
	ctx->pgmap.vmemmap_shift = c->order;
	ctx->range = (struct memmap_range) {
		.pages = vmalloc(memmap_bytes(ctx)),
		.start_pfn = TEST_PFN + c->start,
		.end_pfn = TEST_PFN + c->start + c->nr,
		.zone_idx = MAX_NR_ZONES - 1,
		.nid = num_possible_nodes() > 1 ? 1 : 0,
		.pgmap = &ctx->pgmap,
	};
	KUNIT_ASSERT_NOT_NULL(test, ctx->range.pages);
}

static void __ref memmap_want(struct kunit *test)
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

static void __ref memmap_test_same(struct kunit *test)
{
	const struct memmap_case *c = test->param_value;
	struct memmap_ctx *ctx = test->priv;
	struct memmap_template template;
	enum memmap_method method;

	if (c->order > MAX_FOLIO_ORDER)
		kunit_skip(test, "no folio is that large here");
	memmap_setup(test, c);
	KUNIT_ASSERT_EQ(test, memmap_template_possible(&ctx->range), !sanitized);
	memmap_want(test);
	KUNIT_ASSERT_TRUE(test, memmap_template_make(&ctx->range, &template));
	for (method = MEMMAP_CACHED; method < MEMMAP_NR_METHODS; method++) {
		memmap_apply(ctx, &template, method);
		KUNIT_EXPECT_TRUE_MSG(test, memmap_same(ctx), "%s, %s", c->name,
				      memmap_method_names[method]);
	}
}

/* A word of the template that was not right must show: no word is left uncompared. */
static void __ref memmap_test_mutation(struct kunit *test)
{
	struct memmap_ctx *ctx = test->priv;
	struct memmap_template good, bad;
	unsigned long *words = (unsigned long *)&bad;
	unsigned int i, tail_info;

	memmap_setup(test, memmap_case("devdax compounds"));
	KUNIT_ASSERT_EQ(test, memmap_template_possible(&ctx->range), !sanitized);
	memmap_want(test);
	KUNIT_ASSERT_TRUE(test, memmap_template_make(&ctx->range, &good));
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
static void __ref memmap_test_refused(struct kunit *test)
{
	struct memmap_ctx *ctx = test->priv;
	struct memmap_template template;

	memmap_setup(test, memmap_case("private"));
	KUNIT_ASSERT_TRUE(test, memmap_template_make(&ctx->range, &template));
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
	ctx->range.end_pfn = ctx->range.start_pfn + 1;
	KUNIT_EXPECT_FALSE(test, memmap_template_make(&ctx->range, &template));
}

/* Compounds all of whose pages are folio fields have no tail to copy. */
static void memmap_test_possible(struct kunit *test)
{
	struct memmap_ctx *ctx = test->priv;
	unsigned int order;

	memmap_setup(test, memmap_case("devdax compounds"));
	for (order = 0; order <= 18; order++) {
		ctx->pgmap.vmemmap_shift = order;
		KUNIT_EXPECT_EQ_MSG(test, memmap_template_possible(&ctx->range),
				    !sanitized && (order == 0 || order > 3), "order %u", order);
	}
}

/* A set method is what is used, wherever the range lies and however large its compounds are. */
static void __ref memmap_test_chosen(struct kunit *test)
{
	static const char * const names[] = {
		"private", "across a section", "devdax compounds", "compounds that begin anywhere",
		"compounds at the end of a section", "1 GiB compounds",
	};
	struct memmap_ctx *ctx = test->priv;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		struct memmap_job job = { .range = &ctx->range };
		unsigned long pfn;

		if (memmap_case(names[i])->order > MAX_FOLIO_ORDER)
			continue;
		memmap_setup(test, memmap_case(names[i]));
		pfn = ctx->range.start_pfn;
		memmap_knobs.method = MEMMAP_STREAMING;
		KUNIT_EXPECT_EQ_MSG(test, memmap_choose(&job, &pfn),
				    sanitized ? MEMMAP_FIELDS : MEMMAP_STREAMING, "%s", names[i]);
		KUNIT_EXPECT_EQ(test, pfn, ctx->range.start_pfn);
		memmap_knobs.method = MEMMAP_FIELDS;
		KUNIT_EXPECT_EQ(test, memmap_choose(&job, &pfn), MEMMAP_FIELDS);
		vfree(ctx->range.pages);
		ctx->range.pages = NULL;
	}
}

static void memmap_test_judge(struct kunit *test)
{
	static const struct {
		u64 best[MEMMAP_NR_METHODS];
		enum memmap_method winner;
	} cases[] = {
		{ { 1000, 900, 800, 300 }, MEMMAP_STREAMING },
		{ { 1000, 900, 500, 600 }, MEMMAP_BLOCK },
		{ { 1000, 1100, 1200, 5000 }, MEMMAP_FIELDS },
		{ { 1000, 990, 980, 975 }, MEMMAP_FIELDS },	/* none is clearly faster */
		{ { 1000, 900, 950, 0 }, MEMMAP_CACHED },	/* one did not take part */
		{ { 40, 39, 30, 20 }, MEMMAP_STREAMING },	/* few pages, little time */
		{ { 40, 30, 0, 0 }, MEMMAP_CACHED },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		KUNIT_EXPECT_EQ_MSG(test, memmap_judge(cases[i].best), cases[i].winner,
				    "case %u", i);
}

static void memmap_test_threads(struct kunit *test)
{
	struct memmap_ctx *ctx = test->priv;
	struct memmap_range *range = &ctx->range;

	range->pgmap = &ctx->pgmap;
	range->start_pfn = TEST_PFN;
	range->end_pfn = TEST_PFN + 1000 * SECTION;
	memmap_knobs.threads = 5;
	KUNIT_EXPECT_EQ(test, memmap_threads(range, TEST_PFN), 5);
	memmap_knobs.threads = 0;
	KUNIT_EXPECT_GE(test, memmap_threads(range, TEST_PFN), 1);
	KUNIT_EXPECT_LE(test, memmap_threads(range, TEST_PFN), num_online_cpus());
	memmap_knobs.threads = MEMMAP_THREADS_MAX;
	KUNIT_EXPECT_EQ(test, memmap_threads(range, TEST_PFN), MEMMAP_THREADS_MAX);
	/* Small ranges, small rests and compounds with few struct pages are not worth a thread. */
	KUNIT_EXPECT_EQ(test, memmap_threads(range, range->end_pfn - 16 * SECTION), 2);
	KUNIT_EXPECT_EQ(test, memmap_threads(range, range->end_pfn - SECTION), 0);
	ctx->pgmap.vmemmap_shift = 18;
	range->end_pfn = TEST_PFN + 64 * SECTION;
	KUNIT_EXPECT_LE(test, memmap_threads(range, TEST_PFN), 8);
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
	KUNIT_EXPECT_EQ(test, memmap_chunk_end(range, TEST_PFN + SECTION),
			TEST_PFN + 2 * SECTION);
	KUNIT_EXPECT_EQ(test, memmap_chunk_end(range, TEST_PFN + 3 * SECTION), range->end_pfn);
	ctx->pgmap.vmemmap_shift = 9;
	KUNIT_EXPECT_EQ(test, memmap_chunk_end(range, TEST_PFN), TEST_PFN + SECTION);
	/* A compound that begins in a section belongs to its chunk, wherever it ends. */
	KUNIT_EXPECT_EQ(test, memmap_chunk_end(range, TEST_PFN + 5), TEST_PFN + 5 + SECTION);
	ctx->pgmap.vmemmap_shift = 18;
	range->end_pfn = TEST_PFN + (2UL << 18);
	KUNIT_EXPECT_EQ(test, memmap_chunk_end(range, TEST_PFN), TEST_PFN + (1UL << 18));
}

/* A page of the range as the slow path would make it now; @scratch is one compound. */
static bool __ref memmap_page_right(struct memmap_ctx *ctx, unsigned long i, struct page *scratch)
{
	unsigned long span = 1UL << ctx->pgmap.vmemmap_shift;
	struct page *head = &ctx->range.pages[round_down(i, span)];
	struct memmap_range one = ctx->range;

	if (i % span)
		return true;
	memcpy(scratch, head, span * sizeof(*scratch));
	one.pages = head;
	memmap_init_fields(&one, one.start_pfn, one.start_pfn + 1,
			   memmap_compound_nr(one.start_pfn, NULL, &ctx->pgmap));
	return !memcmp(scratch, head, span * sizeof(*scratch));
}

/* Enough chunks for a contest and for helpers; made anew page by page, as two arrays are large. */
static void __ref memmap_whole(struct kunit *test, const struct memmap_case *c)
{
	static const unsigned int methods[] = {
		MEMMAP_FIELDS, MEMMAP_STREAMING, MEMMAP_METHOD_AUTO,
	};
	struct memmap_ctx *ctx = test->priv;
	struct page *guard, *scratch;
	unsigned int m;

	memmap_setup(test, c);
	scratch = kunit_kmalloc_array(test, 1 << c->order, sizeof(*scratch), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, scratch);
	guard = ctx->range.pages + memmap_bytes(ctx) / sizeof(*guard) - 1;
	memmap_knobs.threads = 4;
	for (m = 0; m < ARRAY_SIZE(methods); m++) {
		unsigned long i, wrong = 0;

		memmap_knobs.method = methods[m];
		memmap_contest_forget();
		memset(ctx->range.pages, UNTOUCHED, memmap_bytes(ctx));
		memmap_init_device_range(&ctx->range);
		for (i = 0; i < ctx->nr; i++)
			wrong += !memmap_page_right(ctx, i, scratch);
		KUNIT_EXPECT_EQ_MSG(test, wrong, 0, "method %u", methods[m]);
		KUNIT_EXPECT_NULL(test, memchr_inv(guard, UNTOUCHED, sizeof(*guard)));
		cond_resched();
	}
}

static void memmap_test_whole_pages(struct kunit *test)
{
	static const struct memmap_case c = {
		"pages", MEMORY_DEVICE_PRIVATE, 0, 100, 84 * SECTION,
	};

	memmap_whole(test, &c);
}

static void memmap_test_whole_compounds(struct kunit *test)
{
	static const struct memmap_case c = {
		"compounds", MEMORY_DEVICE_GENERIC, 9, 300, 84 * SECTION + 100,
	};

	memmap_whole(test, &c);
}

KUNIT_ARRAY_PARAM_DESC(memmap_case, memmap_cases, name);

static struct kunit_case memmap_test_cases[] = {
	KUNIT_CASE_PARAM(memmap_test_same, memmap_case_gen_params),
	KUNIT_CASE(memmap_test_mutation),
	KUNIT_CASE(memmap_test_refused),
	KUNIT_CASE(memmap_test_possible),
	KUNIT_CASE(memmap_test_chosen),
	KUNIT_CASE(memmap_test_judge),
	KUNIT_CASE(memmap_test_threads),
	KUNIT_CASE(memmap_test_chunks),
	KUNIT_CASE(memmap_test_whole_pages),
	KUNIT_CASE(memmap_test_whole_compounds),
	{}
};

static struct kunit_suite memmap_suite = {
	.name = "ferry_memmap",
	.init = memmap_test_init,
	.exit = memmap_test_exit,
	.test_cases = memmap_test_cases,
};

/* At boot only: without memory hotplug, the slow path is gone afterwards. */
kunit_test_init_section_suites(&memmap_suite);

MODULE_DESCRIPTION("KUnit tests for device memory maps");
MODULE_LICENSE("GPL");
