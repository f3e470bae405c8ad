// SPDX-License-Identifier: GPL-2.0
/*
 * Time to initialise the struct pages of a range of 12 GiB by each method,
 * beside the fastest way that this file knows to fill the same bytes with a
 * constant pattern of 64 bytes, which is the limit. Each path runs once a
 * round, and the suite prints every sample: eight ranges, each with a
 * calibration of its own.
 *
 * The benchmark needs no device: the struct pages lie in the largest blocks of
 * the page allocator, 4 MiB each, mapped one behind the other, and are the same
 * for all ranges. So it runs in User-Mode Linux, at the host's speed.
 */

#include <kunit/test.h>
#include <linux/gfp.h>
#include <linux/ktime.h>
#include <linux/copy_nontemporal.h>
#include <linux/mm.h>
#include <linux/vmalloc.h>

#include "../internal.h"

#define BENCH_BLOCKS	48
#define BENCH_BLOCK_BYTES (PAGE_SIZE << MAX_PAGE_ORDER)
#define BENCH_BLOCK_PFNS (BENCH_BLOCK_BYTES / sizeof(struct page))
#define BENCH_RANGES	8	/* of a sample */
#define BENCH_ROUNDS	13	/* the first is warm-up and not printed */
#define BENCH_COLD_BLOCKS 24	/* pairs of blocks for first bindings */

struct bench_range {
	struct dev_pagemap pgmap;
	struct vmem_altmap altmap;
	struct memmap_range range;
	struct memmap_job job;
};

struct bench_path {
	const char *name;
	void (*fill)(struct bench_range *bench);
	enum memmap_method method;
};

static struct page *bench_blocks[BENCH_BLOCKS + 2 * BENCH_COLD_BLOCKS];
static void *bench_pages;	/* the first BENCH_BLOCKS, mapped as one */

static void __ref bench_method(struct bench_range *bench)
{
	memmap_init_parallel(&bench->job, 1);
}

/* The pattern stays in registers. */
static void bench_registers(struct bench_range *bench)
{
	u64 seed = (unsigned long)bench->range.pages | 1;
	u64 *word = (u64 *)bench->range.pages;
	u64 *end = word + BENCH_BLOCKS * BENCH_BLOCK_BYTES / sizeof(u64);

#ifdef arch_store_nontemporal
	for (; word < end; word += 8) {
		arch_store_nontemporal(word, seed, 2);
		arch_store_nontemporal(word + 2, 3, 4);
		arch_store_nontemporal(word + 4, 5, 6);
		arch_store_nontemporal(word + 6, 7, 8);
	}
	copy_nontemporal_drain();
#else
	for (; word < end; word++)
		*word = seed;
#endif
}

/* String instructions copy a source that stays in the second-level cache. */
static void bench_string(struct bench_range *bench)
{
	void *first = bench->range.pages, *dst = first;
	size_t block = 256 * 1024;
	size_t left = BENCH_BLOCKS * BENCH_BLOCK_BYTES - block;

	memset(first, 0x5a, block);
	dst += block;
	for (; left; left -= block, dst += block) {
#ifdef CONFIG_X86_64
		void *to = dst, *from = first;
		size_t len = block;

		asm volatile("rep movsb" : "+D" (to), "+S" (from), "+c" (len)
			     :: "memory");
#else
		memcpy(dst, first, block);
#endif
	}
}

static const struct bench_path bench_paths[] = {
	{ "full", bench_method, MEMMAP_FULL },
	{ "nontemporal", bench_method, MEMMAP_NONTEMPORAL },
	{ "auto", bench_method, MEMMAP_AUTO },
	{ "limit_registers", bench_registers },
	{ "limit_string", bench_string },
};

/* @ranges: how often the struct pages were initialised in @ns */
static void bench_print(struct kunit *test, const char *path,
			const struct memmap_range *range, int round,
			unsigned int threads, unsigned int ranges, u64 ns)
{
	kunit_info(test,
		   "ferry_memmap_sample: {\"path\": \"%s\", \"layout\": \"%s\", \"round\": %d, \"threads\": %u, \"ranges\": %u, \"pages\": %lu, \"struct_page_bytes\": %zu, \"ns\": %llu}",
		   path, range->pgmap->vmemmap_shift ? "compound" : "order0",
		   round, threads, ranges,
		   ranges * (range->end_pfn - range->start_pfn),
		   sizeof(struct page), ns);
}

static void __ref bench_range_init(struct kunit *test,
				   struct bench_range *bench, void *pages,
				   unsigned int order, unsigned long nr)
{
	/* As devdax and fsdax do, with the struct pages on the device. */
	bench->pgmap.type = order ? MEMORY_DEVICE_GENERIC :
				    MEMORY_DEVICE_FS_DAX;
	bench->pgmap.vmemmap_shift = order;
	bench->range = (struct memmap_range) {
		.pages = pages,
		.start_pfn = BENCH_BLOCK_PFNS * 1024,
		.end_pfn = BENCH_BLOCK_PFNS * 1024 + nr,
		.zone_idx = MAX_NR_ZONES - 1,
		.pgmap = &bench->pgmap,
		.altmap = &bench->altmap,
	};
	bench->job.range = &bench->range;
	KUNIT_ASSERT_TRUE(test, memmap_template_possible(&bench->range));
	KUNIT_ASSERT_TRUE(test, memmap_template_make(&bench->range,
						     &bench->job.template));
}

static u64 bench_sample(struct bench_range *bench,
			const struct bench_path *path)
{
	u64 ns = ktime_get_ns();
	unsigned int i;

	bench->job.method = path->method;
	for (i = 0; i < BENCH_RANGES; i++)
		path->fill(bench);
	return ktime_get_ns() - ns;
}

static void __ref bench_layout(struct kunit *test, unsigned int order)
{
	struct bench_range *bench = kunit_kzalloc(test, sizeof(*bench),
						  GFP_KERNEL);
	unsigned int i;
	int round;

	KUNIT_ASSERT_NOT_NULL(test, bench);
	bench_range_init(test, bench, bench_pages, order,
			 BENCH_BLOCKS * BENCH_BLOCK_PFNS);
	for (round = -1; round < BENCH_ROUNDS - 1; round++) {
		for (i = 0; i < ARRAY_SIZE(bench_paths); i++) {
			u64 ns = bench_sample(bench, &bench_paths[i]);

			if (round >= 0)
				bench_print(test, bench_paths[i].name,
					    &bench->range, round, 1,
					    BENCH_RANGES, ns);
			cond_resched();
		}
	}
}

static void memmap_bench_order0(struct kunit *test)
{
	bench_layout(test, 0);
}

static void memmap_bench_compound(struct kunit *test)
{
	bench_layout(test, 9);
}

/*
 * The first binding: memory that the host has never allocated, in turn by the
 * slow path on one CPU and from the template on two.
 */
static void __ref memmap_bench_first(struct kunit *test)
{
	struct bench_range *bench = kunit_kzalloc(test, sizeof(*bench),
						  GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, bench);
	bench_range_init(test, bench, bench_blocks[0], 0, BENCH_BLOCK_PFNS);
	for (i = 0; i < 2 * BENCH_COLD_BLOCKS; i++) {
		unsigned int threads = 1 + i % 2;
		u64 ns;

		bench->range.pages = bench_blocks[BENCH_BLOCKS + i];
		bench->job.method = threads > 1 ? MEMMAP_NONTEMPORAL :
						  MEMMAP_FULL;
		ns = ktime_get_ns();
		memmap_init_parallel(&bench->job, threads);
		ns = ktime_get_ns() - ns;
		bench_print(test, threads > 1 ? "first_parallel" : "first_full",
			    &bench->range, i / 2, threads, 1, ns);
	}
}

static int bench_map_blocks(void)
{
	const unsigned int per_block = 1 << MAX_PAGE_ORDER;
	struct page **pages;
	unsigned int i;

	pages = kvmalloc_array(BENCH_BLOCKS * per_block, sizeof(*pages),
			       GFP_KERNEL);
	if (!pages)
		return -ENOMEM;
	for (i = 0; i < BENCH_BLOCKS * per_block; i++)
		pages[i] = virt_to_page((void *)bench_blocks[i / per_block] +
					i % per_block * PAGE_SIZE);
	bench_pages = vmap(pages, BENCH_BLOCKS * per_block, VM_MAP,
			   PAGE_KERNEL);
	kvfree(pages);
	return bench_pages ? 0 : -ENOMEM;
}

static int memmap_bench_suite_init(struct kunit_suite *suite)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bench_blocks); i++) {
		struct page *block = alloc_pages(GFP_KERNEL | __GFP_NOWARN,
						 MAX_PAGE_ORDER);

		if (!block)
			return -ENOMEM;
		bench_blocks[i] = page_address(block);
	}
	return bench_map_blocks();
}

static void memmap_bench_suite_exit(struct kunit_suite *suite)
{
	unsigned int i;

	vunmap(bench_pages);
	for (i = 0; i < ARRAY_SIZE(bench_blocks); i++)
		free_pages((unsigned long)bench_blocks[i], MAX_PAGE_ORDER);
}

static struct kunit_case memmap_bench_cases[] = {
	KUNIT_CASE_SLOW(memmap_bench_first),
	KUNIT_CASE_SLOW(memmap_bench_order0),
	KUNIT_CASE_SLOW(memmap_bench_compound),
	{}
};

static struct kunit_suite memmap_bench_suite = {
	.name = "ferry_zone_device_init_bench",
	.suite_init = memmap_bench_suite_init,
	.suite_exit = memmap_bench_suite_exit,
	.test_cases = memmap_bench_cases,
};

/* At boot only: without memory hotplug, the slow path is freed afterwards. */
kunit_test_init_section_suites(&memmap_bench_suite);

MODULE_DESCRIPTION("Benchmark of ZONE_DEVICE initialisation");
MODULE_LICENSE("GPL");
