// SPDX-License-Identifier: GPL-2.0
/*
 * copy_page_nontemporal_mc() copies a page whole, and returns how much is
 * missing if it cannot read the source. A machine check is hard to provoke; a
 * guard page takes the same exception table.
 */

#include <kunit/test.h>
#include <linux/copy_nontemporal.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/vmalloc.h>

static void nontemporal_copies_page(struct kunit *test)
{
	u8 *src = kunit_kmalloc(test, PAGE_SIZE, GFP_KERNEL);
	u8 *dst = kunit_kzalloc(test, 3 * PAGE_SIZE, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, src);
	KUNIT_ASSERT_NOT_NULL(test, dst);
	get_random_bytes(src, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, 0,
			copy_page_nontemporal_mc(dst + PAGE_SIZE, src));
	copy_nontemporal_drain();
	KUNIT_EXPECT_MEMEQ(test, dst + PAGE_SIZE, src, PAGE_SIZE);
	KUNIT_EXPECT_NULL(test, memchr_inv(dst, 0, PAGE_SIZE));
	KUNIT_EXPECT_NULL(test, memchr_inv(dst + 2 * PAGE_SIZE, 0, PAGE_SIZE));
}

static void nontemporal_reports_missing(struct kunit *test)
{
#if defined(CONFIG_X86_64) && defined(CONFIG_ARCH_HAS_COPY_MC)
	u8 *dst = kunit_kzalloc(test, PAGE_SIZE, GFP_KERNEL);
	u8 *src = vmalloc(PAGE_SIZE);	/* a guard page follows */
	size_t good, missing;

	KUNIT_ASSERT_NOT_NULL(test, dst);
	KUNIT_ASSERT_NOT_NULL(test, src);
	memset(src, 0x3c, PAGE_SIZE);
	/* The failing load is each of the loop's in turn. */
	for (good = PAGE_SIZE / 2; good < PAGE_SIZE / 2 + 64; good += 8) {
		size_t whole = round_down(good, 64);

		memset(dst, 0, PAGE_SIZE);
		missing = copy_page_nontemporal_mc(dst, src + PAGE_SIZE - good);
		KUNIT_EXPECT_EQ(test, missing, PAGE_SIZE - whole);
		KUNIT_EXPECT_NULL(test, memchr_inv(dst, 0x3c, whole));
	}
	vfree(src);
#else
	kunit_skip(test, "no exception table covers the loads here");
#endif
}

static struct kunit_case nontemporal_cases[] = {
	KUNIT_CASE(nontemporal_copies_page),
	KUNIT_CASE(nontemporal_reports_missing),
	{}
};

static struct kunit_suite nontemporal_suite = {
	.name = "ferry_nontemporal",
	.test_cases = nontemporal_cases,
};

kunit_test_suite(nontemporal_suite);
