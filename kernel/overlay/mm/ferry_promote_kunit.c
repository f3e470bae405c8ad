// SPDX-License-Identifier: GPL-2.0
/* Which folios wait for NUMA balancing, until when, and how they count. */

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

/*
 * The folio at an address of the test's address space, as a hinting fault
 * isolates it.
 */
static struct folio *new_isolated(struct kunit *test, unsigned long address)
{
	unsigned long start;
	struct folio *folio;
	struct page *page;
	LIST_HEAD(list);

	start = kunit_vm_mmap(test, NULL, address, PAGE_SIZE,
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
	folio = new_isolated(test, SZ_1G);
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

static void reset(void *delay)
{
	ferry_promote_drain();
	WRITE_ONCE(ferry_promote_delay, (unsigned long)delay);
	ferry_want_long_lists(false);
}

/* Folios wait until the test drains the lists. */
static void wait_for_long(struct kunit *test)
{
	void *delay = (void *)ferry_promote_delay;

	if (!node_state(1, N_MEMORY))
		kunit_skip(test, "one memory node");
	ferry_want_long_lists(true);
	WRITE_ONCE(ferry_promote_delay, 3600 * HZ);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, reset, delay),
			0);
}

/* mbind(2) and others find each folio in an LRU list, and it stays there. */
static void lru_cache_disable_drains(struct kunit *test)
{
	struct folio *folio;
	bool waits;

	wait_for_long(test);
	folio = new_isolated(test, SZ_1G);
	/* So that it does not migrate. */
	folio_get(folio);
	waits = __ferry_promote(folio, 1);
	KUNIT_EXPECT_TRUE(test, waits);
	KUNIT_EXPECT_FALSE(test, folio_test_lru(folio));
	lru_cache_disable();
	KUNIT_EXPECT_TRUE(test, folio_test_lru(folio));
	if (folio_isolate_lru(folio)) {
		waits = __ferry_promote(folio, 1);
		KUNIT_EXPECT_FALSE(test, waits);
		if (!waits)
			folio_putback_lru(folio);
	}
	lru_cache_enable();
	folio_put(folio);
}

static unsigned long count(enum vm_event_item item)
{
	unsigned long *events;
	unsigned long sum = 0;

	events = kcalloc(NR_VM_EVENT_ITEMS, sizeof(*events), GFP_KERNEL);
	if (events) {
		all_vm_events(events);
		sum = events[item];
	}
	kfree(events);
	return sum;
}

/* A folio whose memory is unmapped while it waits has not migrated. */
static void freed_is_not_migrated(struct kunit *test)
{
	struct folio *folio;
	unsigned long before;

	wait_for_long(test);
	folio = new_isolated(test, SZ_1G);
	before = count(NUMA_PAGE_MIGRATE);
	KUNIT_EXPECT_TRUE(test, __ferry_promote(folio, 1));
	KUNIT_EXPECT_EQ(test, vm_munmap(SZ_1G, PAGE_SIZE), 0);
	ferry_promote_drain();
	KUNIT_EXPECT_EQ(test, count(NUMA_PAGE_MIGRATE), before);
}

/* A large folio that finds no memory does not stop smaller ones. */
static void orders_migrate_apart(struct kunit *test)
{
	static const unsigned int orders[] = { 0, 2, 0 };
	struct folio *folio, *next;
	unsigned int i, alike = 0;
	LIST_HEAD(from);
	LIST_HEAD(to);

	for (i = 0; i < ARRAY_SIZE(orders); i++) {
		folio = __folio_alloc_node(GFP_KERNEL, orders[i], 0);
		if (folio)
			list_add_tail(&folio->lru, &from);
	}
	if (!list_empty(&from))
		ferry_take_alike(&from, &to);
	list_for_each_entry_safe(folio, next, &to, lru) {
		KUNIT_EXPECT_EQ(test, folio_order(folio), 0);
		alike++;
		list_move(&folio->lru, &from);
	}
	KUNIT_EXPECT_EQ(test, alike, 2);
	i = 0;
	list_for_each_entry_safe(folio, next, &from, lru) {
		list_del(&folio->lru);
		folio_put(folio);
		i++;
	}
	KUNIT_EXPECT_EQ(test, i, ARRAY_SIZE(orders));
}

static struct kunit_case cases[] = {
	KUNIT_CASE(cpuset_is_obeyed),
	KUNIT_CASE(lru_cache_disable_drains),
	KUNIT_CASE(freed_is_not_migrated),
	KUNIT_CASE(orders_migrate_apart),
	{}
};

static struct kunit_suite suite = {
	.name = "ferry_promote",
	.test_cases = cases,
};

kunit_test_suite(suite);
