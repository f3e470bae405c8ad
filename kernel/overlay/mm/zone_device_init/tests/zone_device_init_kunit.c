// SPDX-License-Identifier: GPL-2.0
/*
 * A struct page from a template has the same bytes as one of the slow path, for
 * every type, every size of a compound from 16 pages to 1 GiB, and at edges.
 * The comparison itself is tested too: it must notice a change in any word of a
 * template.
 *
 * The struct pages lie in an array of the test's own and stand for PFNs that no
 * memory has, so the tests need no device.
 */

#include <kunit/test.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/vmalloc.h>

#include "../internal.h"

/* 4 TiB: beyond the memory of test machines, within every sparse map. */
#define TEST_PFN	BIT(30)
#define UNTOUCHED	0xa5

struct memmap_case {
	const char *name;
	enum memory_type type;
	unsigned int order;
	unsigned long start;	/* from TEST_PFN */
	unsigned long nr;
	bool dedup;		/* most tails share struct pages */
};

/* As in x86; elsewhere, sections begin at a divisor or multiple of it. */
#define SECTION	BIT(15)

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
	{ "compounds without most tails", MEMORY_DEVICE_GENERIC, 9, 0, 4 * 512,
	  true },
	{ "compounds across a section", MEMORY_DEVICE_GENERIC, 9,
	  SECTION - 1024, 2048 },
	{ "smallest compounds", MEMORY_DEVICE_GENERIC, 4, 0, 256 },
	{ "compounds that begin anywhere", MEMORY_DEVICE_GENERIC, 9, 77,
	  4 * 512 },
	{ "an incomplete last compound", MEMORY_DEVICE_GENERIC, 9, 0,
	  3 * 512 + 100 },
	{ "compounds at the end of a section", MEMORY_DEVICE_GENERIC, 9,
	  SECTION - 512, 1024 },
	{ "1 GiB compounds", MEMORY_DEVICE_GENERIC, 18, 0, 2UL << 18 },
	{ "1 GiB compounds without most tails", MEMORY_DEVICE_GENERIC, 18, 0,
	  2UL << 18, true },
};

struct memmap_ctx {
	struct dev_pagemap pgmap;
	struct vmem_altmap altmap;
	struct memmap_range range;
	bool nontemporal;
	unsigned int threads;
	unsigned long nr;
	struct page *array;	/* a guard, the struct pages, a guard */
	struct page *want;	/* expected contents of @array */
};

static int memmap_test_init(struct kunit *test)
{
	struct memmap_ctx *ctx = kunit_kzalloc(test, sizeof(*ctx), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, ctx);
	ctx->nontemporal = memmap_nontemporal;
	ctx->threads = memmap_threads;
	test->priv = ctx;
	return 0;
}

static void memmap_free(struct memmap_ctx *ctx)
{
	vfree(ctx->array);
	vfree(ctx->want);
	ctx->array = NULL;
	ctx->want = NULL;
}

static void memmap_test_exit(struct kunit *test)
{
	struct memmap_ctx *ctx = test->priv;

	if (!ctx)
		return;
	memmap_nontemporal = ctx->nontemporal;
	memmap_threads = ctx->threads;
	memmap_free(ctx);
}

static size_t memmap_bytes(struct memmap_ctx *ctx)
{
	unsigned long span = 1UL << ctx->pgmap.vmemmap_shift;

	/* The last compound is completed. No store may hit a guard. */
	return (round_up(ctx->nr, span) + 2) * sizeof(struct page);
}

static const struct memmap_case *memmap_case(const char *name)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(memmap_cases); i++)
		if (!strcmp(memmap_cases[i].name, name))
			return &memmap_cases[i];
	return NULL;
}

/*
 * These take the slow path by design. The tests apply the template all the
 * same. The sanitizer checks its ordinary accesses only: non-temporal stores
 * are asm statements, of which the guards show those just outside of a range.
 */
static const bool sanitized = IS_ENABLED(CONFIG_KASAN_GENERIC) ||
			      IS_ENABLED(CONFIG_KASAN_SW_TAGS) ||
			      IS_ENABLED(CONFIG_KMSAN) ||
			      IS_ENABLED(CONFIG_KCSAN);

static void memmap_setup(struct kunit *test, const struct memmap_case *c)
{
	struct memmap_ctx *ctx = test->priv;

	ctx->nr = c->nr;
	ctx->pgmap.type = c->type;
	ctx->pgmap.vmemmap_shift = c->order;
	ctx->array = vmalloc(memmap_bytes(ctx));
	KUNIT_ASSERT_NOT_NULL(test, ctx->array);
	ctx->range = (struct memmap_range) {
		.pages = ctx->array + 1,
		.start_pfn = TEST_PFN + c->start,
		.end_pfn = TEST_PFN + c->start + c->nr,
		.zone_idx = MAX_NR_ZONES - 1,
		.nid = num_possible_nodes() > 1 ? 1 : 0,
		.pgmap = &ctx->pgmap,
		.altmap = c->dedup ? NULL : &ctx->altmap,
	};
}

static void __ref memmap_want(struct kunit *test)
{
	struct memmap_ctx *ctx = test->priv;

	ctx->want = vmalloc(memmap_bytes(ctx));
	KUNIT_ASSERT_NOT_NULL(test, ctx->want);
	memset(ctx->array, UNTOUCHED, memmap_bytes(ctx));
	memmap_init_full(&ctx->range, ctx->range.start_pfn, ctx->range.end_pfn,
			 ULONG_MAX);
	memcpy(ctx->want, ctx->array, memmap_bytes(ctx));
}

static bool memmap_same(struct memmap_ctx *ctx)
{
	return !memcmp(ctx->want, ctx->array, memmap_bytes(ctx));
}

static void __ref memmap_apply(struct memmap_ctx *ctx,
			       const struct memmap_template *template)
{
	memset(ctx->array, UNTOUCHED, memmap_bytes(ctx));
	memmap_template_apply(&ctx->range, ctx->range.start_pfn,
			      ctx->range.end_pfn, template);
}

static void __ref memmap_expect_same(struct kunit *test,
				     const struct memmap_case *c)
{
	struct memmap_ctx *ctx = test->priv;
	struct memmap_template template;

	memmap_setup(test, c);
	KUNIT_ASSERT_EQ(test, memmap_template_possible(&ctx->range),
			!sanitized);
	memmap_want(test);
	KUNIT_ASSERT_TRUE(test, memmap_template_make(&ctx->range, &template));
	memmap_apply(ctx, &template);
	KUNIT_EXPECT_TRUE_MSG(test, memmap_same(ctx), "%s, order %u%s", c->name,
			      c->order, c->dedup ? ", without most tails" : "");
	memmap_free(ctx);
}

static void memmap_test_same(struct kunit *test)
{
	const struct memmap_case *c = test->param_value;

	if (c->order > MAX_FOLIO_ORDER)
		kunit_skip(test, "no folio is that large here");
	memmap_expect_same(test, c);
}

/*
 * Every order with tails that are alike, below that of 1 GiB, which
 * memmap_test_same() has. The vmemmap is deduplicated from order 8 on.
 */
static void memmap_test_orders(struct kunit *test)
{
	struct memmap_case c = { "compounds", MEMORY_DEVICE_GENERIC };
	const unsigned int end = min(18, MAX_FOLIO_ORDER + 1);

	for (c.order = 4; c.order < end; c.order++) {
		c.nr = 2UL << c.order;
		c.dedup = false;
		memmap_expect_same(test, &c);
		c.dedup = true;
		memmap_expect_same(test, &c);
	}
}

/* Without most tails, the struct pages behind the first two pages stay. */
static void __ref memmap_test_dedup(struct kunit *test)
{
	const unsigned long nr = 2 * PAGE_SIZE / sizeof(struct page);
	struct memmap_ctx *ctx = test->priv;
	struct page *want;

	memmap_setup(test, memmap_case("compounds without most tails"));
	if (IS_ENABLED(CONFIG_ZONE_DEVICE) &&
	    !IS_ENABLED(CONFIG_ARCH_WANT_OPTIMIZE_DAX_VMEMMAP))
		kunit_skip(test, "the vmemmap is not deduplicated here");
	KUNIT_ASSERT_EQ(test, memmap_compound_nr(ctx->range.start_pfn, NULL,
						 &ctx->pgmap), nr);
	memmap_want(test);
	want = ctx->want + 1;
	KUNIT_EXPECT_NULL(test, memchr_inv(want + nr, UNTOUCHED,
					   (512 - nr) * sizeof(*want)));
	KUNIT_EXPECT_NOT_NULL(test, memchr_inv(want + nr - 1, UNTOUCHED,
					       sizeof(*want)));
}

/* A wrong word of the template must show: each word is compared. */
static void __ref memmap_test_mutation(struct kunit *test)
{
	struct memmap_ctx *ctx = test->priv;
	struct memmap_template good, bad;
	unsigned long *words = (unsigned long *)&bad;
	unsigned int i, tail_info;

	memmap_setup(test, memmap_case("devdax compounds"));
	KUNIT_ASSERT_EQ(test, memmap_template_possible(&ctx->range),
			!sanitized);
	memmap_want(test);
	KUNIT_ASSERT_TRUE(test, memmap_template_make(&ctx->range, &good));
	tail_info = (offsetof(struct memmap_template, tail) +
		     offsetof(struct page, compound_info)) / sizeof(long);
	for (i = 0; i < sizeof(bad) / sizeof(long); i++) {
		bool set_anyway = i == tail_info, matches;

		bad = good;
		words[i] ^= 1UL << (7 * i % BITS_PER_LONG);
		memmap_apply(ctx, &bad);
		KUNIT_EXPECT_EQ_MSG(test, memmap_same(ctx), set_anyway,
				    "word %u", i);
		matches = memmap_template_matches(&ctx->range,
						  ctx->range.start_pfn, &bad);
		KUNIT_EXPECT_EQ_MSG(test, matches, set_anyway, "word %u", i);
	}
}

/* A template of other pages is wrong, and the comparison notices. */
static void __ref memmap_test_refused(struct kunit *test)
{
	struct memmap_ctx *ctx = test->priv;
	struct memmap_range *range = &ctx->range;
	struct memmap_template template;
	unsigned long pfn;

	memmap_setup(test, memmap_case("private"));
	pfn = range->start_pfn;
	KUNIT_ASSERT_TRUE(test, memmap_template_make(range, &template));
	KUNIT_EXPECT_TRUE(test, memmap_template_matches(range, pfn, &template));
	ctx->pgmap.type = MEMORY_DEVICE_GENERIC;
	KUNIT_EXPECT_FALSE(test,
			   memmap_template_matches(range, pfn, &template));
	ctx->pgmap.type = MEMORY_DEVICE_PRIVATE;
	range->nid = 0;
	KUNIT_EXPECT_EQ(test, num_possible_nodes() == 1,
			memmap_template_matches(range, pfn, &template));
	/* One page has no neighbour to be compared with. */
	range->end_pfn = pfn + 1;
	KUNIT_EXPECT_FALSE(test, memmap_template_make(range, &template));
}

/* In the smallest compounds, prep_compound_head() writes all tails. */
static void memmap_test_possible(struct kunit *test)
{
	struct memmap_ctx *ctx = test->priv;
	unsigned int order;

	memmap_setup(test, memmap_case("devdax compounds"));
	for (order = 0; order <= 18; order++) {
		ctx->pgmap.vmemmap_shift = order;
		KUNIT_EXPECT_EQ_MSG(test,
				    memmap_template_possible(&ctx->range),
				    !sanitized && (!order || order > 3),
				    "order %u", order);
	}
}

/* Ranges of any position, order and size get the template if it is enabled. */
static void __ref memmap_test_chosen(struct kunit *test)
{
	static const char * const names[] = {
		"private", "two pages", "across a section", "devdax compounds",
		"compounds that begin anywhere",
		"compounds at the end of a section", "1 GiB compounds",
	};
	struct memmap_ctx *ctx = test->priv;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		struct memmap_job job = { .range = &ctx->range };

		if (memmap_case(names[i])->order > MAX_FOLIO_ORDER)
			continue;
		memmap_setup(test, memmap_case(names[i]));
		memmap_nontemporal = true;
		KUNIT_EXPECT_EQ_MSG(test, memmap_choose(&job),
				    sanitized ? MEMMAP_FULL : MEMMAP_AUTO,
				    "%s", names[i]);
		memmap_nontemporal = false;
		KUNIT_EXPECT_EQ(test, memmap_choose(&job), MEMMAP_FULL);
		memmap_free(ctx);
	}
}

/* The trials alternate; then the method with the shortest trial is taken. */
static void memmap_test_calibrate(struct kunit *test)
{
	static const struct {
		u64 full[MEMMAP_TRIALS / 2];
		u64 nontemporal[MEMMAP_TRIALS / 2];
		enum memmap_method fastest;
	} cases[] = {
		{ { 1000, 1000, 1000 }, { 900, 300, 400 }, MEMMAP_NONTEMPORAL },
		{ { 1000, 900, 950 }, { 5000, 1970, 1980 }, MEMMAP_FULL },
		{ { 9000, 800, 9000 }, { 950, 901, 950 }, MEMMAP_FULL },
		/* It does not win by more than its trial's advantage. */
		{ { 9000, 800, 9000 }, { 950, 900, 950 }, MEMMAP_NONTEMPORAL },
		{ { 900, 0, 0 }, { 2000, 40, 60 }, MEMMAP_FULL },
	};
	unsigned int i, n;
	bool trial;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct memmap_calibration calib = {};

		for (n = 0; n < MEMMAP_TRIALS; n++) {
			enum memmap_method method = MEMMAP_NONTEMPORAL;
			u64 ns = cases[i].nontemporal[n / 2];

			if (n % 2) {
				method = MEMMAP_FULL;
				ns = cases[i].full[n / 2];
			}
			KUNIT_EXPECT_EQ(test,
					memmap_calibrate_next(&calib, &trial),
					method);
			KUNIT_EXPECT_TRUE(test, trial);
			memmap_calibrate_add(&calib, method, trial, ns);
		}
		KUNIT_EXPECT_EQ_MSG(test, memmap_calibrate_next(&calib, &trial),
				    cases[i].fastest, "case %u", i);
		KUNIT_EXPECT_FALSE(test, trial);
	}
}

/* 16 CPUs claim chunks before any has ended: only the trials are compared. */
static void memmap_test_calibrate_trials(struct kunit *test)
{
	struct memmap_calibration calib = {};
	enum memmap_method methods[16];
	bool trials[16], trial;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(methods); i++)
		methods[i] = memmap_calibrate_next(&calib, &trials[i]);
	KUNIT_EXPECT_EQ(test, methods[12], MEMMAP_NONTEMPORAL);
	for (i = 0; i < ARRAY_SIZE(methods); i++) {
		u64 ns = methods[i] == MEMMAP_FULL ? 1000 : 2000;

		memmap_calibrate_add(&calib, methods[i], trials[i],
				     i == 12 ? 1 : ns);
	}
	KUNIT_EXPECT_EQ(test, memmap_calibrate_next(&calib, &trial),
			MEMMAP_FULL);
}

/* Chunks that are claimed before both methods have a result: the template. */
static void memmap_test_calibrate_early(struct kunit *test)
{
	struct memmap_calibration calib = { .trials = MEMMAP_TRIALS };
	bool trial;

	KUNIT_EXPECT_EQ(test, memmap_calibrate_next(&calib, &trial),
			MEMMAP_NONTEMPORAL);
	memmap_calibrate_add(&calib, MEMMAP_FULL, true, 1);
	KUNIT_EXPECT_EQ(test, memmap_calibrate_next(&calib, &trial),
			MEMMAP_NONTEMPORAL);
	memmap_calibrate_add(&calib, MEMMAP_NONTEMPORAL, true, 2);
	KUNIT_EXPECT_EQ(test, memmap_calibrate_next(&calib, &trial),
			MEMMAP_FULL);
}

static void memmap_test_threads(struct kunit *test)
{
	struct memmap_ctx *ctx = test->priv;
	struct memmap_range *range = &ctx->range;

	range->pgmap = &ctx->pgmap;
	range->altmap = &ctx->altmap;
	range->start_pfn = TEST_PFN;
	range->end_pfn = TEST_PFN + 1000 * MEMMAP_CHUNK_PFNS;
	memmap_threads = 5;
	KUNIT_EXPECT_EQ(test, memmap_nr_threads(range), 5);
	memmap_threads = 0;
	KUNIT_EXPECT_GE(test, memmap_nr_threads(range), 1);
	KUNIT_EXPECT_LE(test, memmap_nr_threads(range), num_online_cpus());
	memmap_threads = MEMMAP_THREADS_MAX;
	KUNIT_EXPECT_EQ(test, memmap_nr_threads(range), MEMMAP_THREADS_MAX);
	/* Small ranges and compounds with few struct pages need no helper. */
	range->end_pfn = TEST_PFN + 16 * MEMMAP_CHUNK_PFNS;
	KUNIT_EXPECT_EQ(test, memmap_nr_threads(range), 2);
	range->end_pfn = TEST_PFN + MEMMAP_CHUNK_PFNS;
	KUNIT_EXPECT_EQ(test, memmap_nr_threads(range), 0);
	ctx->pgmap.vmemmap_shift = 18;
	range->end_pfn = TEST_PFN + 64 * MEMMAP_CHUNK_PFNS;
	KUNIT_EXPECT_LE(test, memmap_nr_threads(range), 8);
	ctx->pgmap.vmemmap_shift = 9;
	range->altmap = NULL;
	KUNIT_EXPECT_EQ(test, memmap_nr_threads(range),
			8 * memmap_compound_nr(TEST_PFN, NULL, &ctx->pgmap) /
			512);
}

static void memmap_test_chunks(struct kunit *test)
{
	struct memmap_ctx *ctx = test->priv;
	struct memmap_range *range = &ctx->range;

	range->pgmap = &ctx->pgmap;
	range->start_pfn = TEST_PFN;
	range->end_pfn = TEST_PFN + 3 * MEMMAP_CHUNK_PFNS + 7;
	KUNIT_EXPECT_EQ(test, memmap_chunk_end(range, TEST_PFN),
			TEST_PFN + MEMMAP_CHUNK_PFNS);
	KUNIT_EXPECT_EQ(test, memmap_chunk_end(range, TEST_PFN + 5),
			TEST_PFN + 5 + MEMMAP_CHUNK_PFNS);
	KUNIT_EXPECT_EQ(test,
			memmap_chunk_end(range,
					 TEST_PFN + 3 * MEMMAP_CHUNK_PFNS),
			range->end_pfn);
	/* Chunks end where compounds do. */
	ctx->pgmap.vmemmap_shift = 9;
	KUNIT_EXPECT_EQ(test, memmap_chunk_end(range, TEST_PFN + 5),
			TEST_PFN + 5 + MEMMAP_CHUNK_PFNS);
	ctx->pgmap.vmemmap_shift = 18;
	range->end_pfn = TEST_PFN + (2UL << 18);
	KUNIT_EXPECT_EQ(test, memmap_chunk_end(range, TEST_PFN),
			TEST_PFN + (1UL << 18));
}

/* Compare the compound at @i, or page, with a new one of the slow path. */
static bool __ref memmap_right(struct memmap_ctx *ctx, unsigned long i,
			       struct page *scratch)
{
	unsigned long span = 1UL << ctx->pgmap.vmemmap_shift;
	struct page *head = &ctx->range.pages[i];
	struct memmap_range one = ctx->range;
	unsigned long nr = memmap_compound_nr(one.start_pfn, one.altmap,
					      one.pgmap);

	/* Without most tails, struct pages behind the first two pages stay. */
	if (memchr_inv(head + nr, UNTOUCHED, (span - nr) * sizeof(*head)))
		return false;
	memcpy(scratch, head, nr * sizeof(*scratch));
	one.pages = head;
	memmap_init_full(&one, one.start_pfn, one.start_pfn + 1, ULONG_MAX);
	return !memcmp(scratch, head, nr * sizeof(*scratch));
}

static void __ref memmap_check_whole(struct kunit *test, const char *what)
{
	struct memmap_ctx *ctx = test->priv;
	unsigned long span = 1UL << ctx->pgmap.vmemmap_shift, i, wrong = 0;
	struct page *array = ctx->array, *guard, *scratch;

	scratch = kunit_kmalloc_array(test, span, sizeof(*scratch), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, scratch);
	guard = array + memmap_bytes(ctx) / sizeof(*guard) - 1;
	for (i = 0; i < ctx->nr; i += span)
		wrong += !memmap_right(ctx, i, scratch);
	KUNIT_EXPECT_EQ_MSG(test, wrong, 0, "%s", what);
	KUNIT_EXPECT_NULL(test, memchr_inv(array, UNTOUCHED, sizeof(*array)));
	KUNIT_EXPECT_NULL(test, memchr_inv(guard, UNTOUCHED, sizeof(*guard)));
	memset(array, UNTOUCHED, memmap_bytes(ctx));
	cond_resched();
}

/*
 * Enough chunks for the trials and for helpers. The test compares compound by
 * compound, because a second array would be large.
 */
static void __ref memmap_whole(struct kunit *test, const struct memmap_case *c)
{
	static const char * const names[] = { "full", "nontemporal", "auto" };
	struct memmap_ctx *ctx = test->priv;
	struct memmap_job job = { .range = &ctx->range };

	memmap_setup(test, c);
	memset(ctx->array, UNTOUCHED, memmap_bytes(ctx));
	for (job.method = 0; job.method <= MEMMAP_AUTO; job.method++) {
		KUNIT_ASSERT_TRUE(test, memmap_template_make(job.range,
							     &job.template));
		memmap_init_parallel(&job, 4);
		memmap_check_whole(test, names[job.method]);
	}
	memmap_threads = 2;
	memmap_init_device_range(&ctx->range);
	memmap_check_whole(test, "memmap_init_device_range");
}

static void memmap_test_whole_pages(struct kunit *test)
{
	static const struct memmap_case c = {
		"pages", MEMORY_DEVICE_PRIVATE, 0, 100, 20 * MEMMAP_CHUNK_PFNS,
	};

	memmap_whole(test, &c);
}

static void memmap_test_whole_compounds(struct kunit *test)
{
	static const struct memmap_case c = {
		"compounds", MEMORY_DEVICE_GENERIC, 9, 300,
		20 * MEMMAP_CHUNK_PFNS + 100,
	};

	memmap_whole(test, &c);
}

static void memmap_test_whole_dedup(struct kunit *test)
{
	static const struct memmap_case c = {
		"dedup", MEMORY_DEVICE_GENERIC, 9, 0, 20 * MEMMAP_CHUNK_PFNS,
		true,
	};

	memmap_whole(test, &c);
}

KUNIT_ARRAY_PARAM_DESC(memmap_case, memmap_cases, name);

static struct kunit_case memmap_test_cases[] = {
	KUNIT_CASE_PARAM(memmap_test_same, memmap_case_gen_params),
	KUNIT_CASE(memmap_test_orders),
	KUNIT_CASE(memmap_test_dedup),
	KUNIT_CASE(memmap_test_mutation),
	KUNIT_CASE(memmap_test_refused),
	KUNIT_CASE(memmap_test_possible),
	KUNIT_CASE(memmap_test_chosen),
	KUNIT_CASE(memmap_test_calibrate),
	KUNIT_CASE(memmap_test_calibrate_trials),
	KUNIT_CASE(memmap_test_calibrate_early),
	KUNIT_CASE(memmap_test_threads),
	KUNIT_CASE(memmap_test_chunks),
	KUNIT_CASE(memmap_test_whole_pages),
	KUNIT_CASE(memmap_test_whole_compounds),
	KUNIT_CASE(memmap_test_whole_dedup),
	{}
};

static struct kunit_suite memmap_suite = {
	.name = "ferry_zone_device_init",
	.init = memmap_test_init,
	.exit = memmap_test_exit,
	.test_cases = memmap_test_cases,
};

/* At boot only: without memory hotplug, the slow path is freed afterwards. */
kunit_test_init_section_suites(&memmap_suite);

MODULE_DESCRIPTION("KUnit tests of ZONE_DEVICE initialisation");
MODULE_LICENSE("GPL");
