// SPDX-License-Identifier: GPL-2.0
/*
 * Streaming stores copy a page whole, and say how much is missing when the source cannot be
 * read. A machine check is hard to come by; a guard page takes the same exception table.
 */

#include <kunit/test.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/vmalloc.h>

#include "../stream.h"

static void stream_copies_page(struct kunit *test)
{
	u8 *src = kunit_kmalloc(test, PAGE_SIZE, GFP_KERNEL);
	u8 *dst = kunit_kzalloc(test, 3 * PAGE_SIZE, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, src);
	KUNIT_ASSERT_NOT_NULL(test, dst);
	get_random_bytes(src, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, ferry_stream_page(dst + PAGE_SIZE, src), 0);
	ferry_stream_drain();
	KUNIT_EXPECT_MEMEQ(test, dst + PAGE_SIZE, src, PAGE_SIZE);
	KUNIT_EXPECT_NULL(test, memchr_inv(dst, 0, PAGE_SIZE));
	KUNIT_EXPECT_NULL(test, memchr_inv(dst + 2 * PAGE_SIZE, 0, PAGE_SIZE));
}

static void stream_reports_missing(struct kunit *test)
{
#if defined(CONFIG_X86_64) && defined(CONFIG_ARCH_HAS_COPY_MC)
	u8 *dst = kunit_kzalloc(test, PAGE_SIZE, GFP_KERNEL);
	u8 *src = vmalloc(PAGE_SIZE);	/* a guard page follows */
	size_t good;

	KUNIT_ASSERT_NOT_NULL(test, dst);
	KUNIT_ASSERT_NOT_NULL(test, src);
	memset(src, 0x3c, PAGE_SIZE);
	/* Each load of the loop has its turn to be the one that fails. */
	for (good = PAGE_SIZE / 2; good < PAGE_SIZE / 2 + 64; good += sizeof(u64)) {
		size_t whole = round_down(good, 64);

		memset(dst, 0, PAGE_SIZE);
		KUNIT_EXPECT_EQ(test, ferry_stream_page(dst, src + PAGE_SIZE - good),
				PAGE_SIZE - whole);
		KUNIT_EXPECT_NULL(test, memchr_inv(dst, 0x3c, whole));
	}
	vfree(src);
#else
	kunit_skip(test, "loads are not covered by an exception table here");
#endif
}

static struct kunit_case stream_cases[] = {
	KUNIT_CASE(stream_copies_page),
	KUNIT_CASE(stream_reports_missing),
	{}
};

static struct kunit_suite stream_suite = {
	.name = "ferry_stream",
	.test_cases = stream_cases,
};

kunit_test_suite(stream_suite);
