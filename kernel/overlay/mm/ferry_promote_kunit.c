// SPDX-License-Identifier: GPL-2.0
/* A hinting fault adds its folio to a list only if its task may use the node */

#include <kunit/test.h>
#include <linux/cpuset.h>
#include <linux/ferry_promote.h>
#include <linux/migrate.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/sizes.h>
#include <linux/swap.h>
#include <linux/uaccess.h>

#include "internal.h"

/* A folio of the test's address space, as a hinting fault isolates it. */
static struct folio *new_isolated(struct kunit *test)
{
	unsigned long start;
	struct folio *folio;
	struct page *page;
	LIST_HEAD(list);

	start = kunit_vm_mmap(test, NULL, SZ_1G, PAGE_SIZE,
			      PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR_VALUE(start));
	KUNIT_ASSERT_EQ(test, put_user(1, (u32 __user *)start), 0);
	lru_add_drain_all();
	KUNIT_ASSERT_EQ(test, get_user_pages_fast(start, 1, 0, &page), 1);
	folio = page_folio(page);
	KUNIT_ASSERT_TRUE(test, isolate_folio_to_list(folio, &list));
	list_del(&folio->lru);
	folio_put(folio);
	return folio;
}

static void use_cpusets(bool use)
{
	cpus_read_lock();
	if (use)
		cpuset_inc();
	else
		cpuset_dec();
	cpus_read_unlock();
}

static void cpuset_is_obeyed(struct kunit *test)
{
	nodemask_t all = current->mems_allowed;
	nodemask_t first = nodemask_of_node(0);
	struct folio *folio;

	if (!node_state(1, N_MEMORY))
		kunit_skip(test, "one memory node");
	folio = new_isolated(test);
	ferry_want_long_lists(true);
	use_cpusets(true);
	set_mems_allowed(first);
	if (!__ferry_promote(folio, 1)) {
		set_mems_allowed(all);
		KUNIT_EXPECT_TRUE(test, __ferry_promote(folio, 1));
	} else {
		set_mems_allowed(all);
		KUNIT_FAIL(test, "a folio waits to go to a forbidden node");
	}
	use_cpusets(false);
	ferry_want_long_lists(false);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(cpuset_is_obeyed),
	{}
};

static struct kunit_suite suite = {
	.name = "ferry_promote",
	.test_cases = cases,
};

kunit_test_suite(suite);
