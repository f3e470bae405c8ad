// SPDX-License-Identifier: GPL-2.0
/* Cases that the checker reports, and cases that it lets pass. */

#include <kunit/static_stub.h>
#include <linux/delay.h>
#include <linux/kthread.h>

#include "fixture.h"

#define ADDR	0x10000000UL

/* A PTE that was deferred: its folio moved from @src to @dst. */
struct moved {
	struct mm_struct *mm;
	struct page *src, *dst, *other;
	unsigned int reports;
};

static void hear(const char *what, const struct migrc_record *record)
{
	struct moved *moved = kunit_get_current_test()->priv;

	moved->reports++;
}

/* Reports since the last call. */
static unsigned int heard(struct kunit *test)
{
	struct moved *moved = test->priv;
	unsigned int reports = moved->reports;

	moved->reports = 0;
	return reports;
}

static pte_t read_only(struct page *page)
{
	return mk_pte(page, PAGE_READONLY);
}

static pte_t writable(struct page *page)
{
	return pte_mkwrite_novma(pte_mkdirty(mk_pte(page, PAGE_READONLY)));
}

static void set(struct mm_struct *mm, pte_t pte)
{
	migrc_check_set(mm, ADDR, pte, 1);
}

static void flushed(struct mm_struct *mm)
{
	migrc_check_range_flushed(mm, ADDR, ADDR + PAGE_SIZE);
}

static void free_it(void *page)
{
	__free_page(page);
}

static struct page *new_page(struct kunit *test)
{
	struct page *page = alloc_page(GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, free_it, page),
			0);
	return page;
}

static int check_init(struct kunit *test)
{
	struct moved *moved = kunit_kzalloc(test, sizeof(*moved), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, moved);
	test->priv = moved;
	moved->src = new_page(test);
	moved->dst = new_page(test);
	moved->other = new_page(test);
	/* The mm exits first, so the pages are freed without a record. */
	moved->mm = new_mm(test);
	kunit_activate_static_stub(test, migrc_check_report, hear);
	migrc_check_deferred(moved->mm, ADDR, read_only(moved->src));
	set(moved->mm, read_only(moved->dst));
	return 0;
}

static void checker_lets_pass_what_is_flushed(struct kunit *test)
{
	struct moved *moved = test->priv;

	flushed(moved->mm);
	set(moved->mm, read_only(moved->other));
	set(moved->mm, writable(moved->dst));
	migrc_check_written(page_folio(moved->dst));
	migrc_check_removed(page_folio(moved->dst));
	migrc_check_failed(page_to_pfn(moved->src));
	migrc_check_free(moved->src, 0);
	KUNIT_EXPECT_EQ(test, heard(test), 0);
}

static void checker_lets_pass_after_a_whole_flush(struct kunit *test)
{
	struct moved *moved = test->priv;

	migrc_check_flushed(moved->mm, migrc_check_begin());
	set(moved->mm, writable(moved->dst));
	KUNIT_EXPECT_EQ(test, heard(test), 0);
}

static void checker_sees_write_permission(struct kunit *test)
{
	struct moved *moved = test->priv;

	set(moved->mm, writable(moved->dst));
	KUNIT_EXPECT_EQ(test, heard(test), 1);
}

static void checker_sees_write_permission_of_others(struct kunit *test)
{
	struct moved *moved = test->priv;

	set(new_mm(test), writable(moved->dst));
	KUNIT_EXPECT_EQ(test, heard(test), 1);
	set(new_mm(test), read_only(moved->dst));
	KUNIT_EXPECT_EQ(test, heard(test), 0);
}

static void checker_lets_pass_what_moves_on(struct kunit *test)
{
	struct moved *moved = test->priv;

	migrc_check_deferred(moved->mm, ADDR, read_only(moved->dst));
	set(moved->mm, read_only(moved->other));
	KUNIT_EXPECT_EQ(test, heard(test), 0);
}

static int flush_repeatedly(void *mm)
{
	while (!kthread_should_stop()) {
		migrc_check_flushed(mm, migrc_check_begin());
		usleep_range(20, 40);
	}
	return 0;
}

static void stop_flushes(void *task)
{
	kthread_stop(task);
}

static void checker_lets_pass_flushes_of_others(struct kunit *test)
{
	struct moved *moved = test->priv;
	unsigned long end = jiffies + HZ;
	struct task_struct *task;

	task = kthread_run(flush_repeatedly, moved->mm, "migrc_flush");
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, task);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, stop_flushes,
							task), 0);
	while (time_before(jiffies, end)) {
		migrc_check_deferred(moved->mm, ADDR, read_only(moved->dst));
		set(moved->mm, read_only(moved->other));
		swap(moved->dst, moved->other);
		cond_resched();
	}
	KUNIT_EXPECT_EQ(test, heard(test), 0);
}

static void checker_lets_pass_after_an_overwrite(struct kunit *test)
{
	unsigned long i, addr = ADDR + PAGE_SIZE;
	struct moved *moved = test->priv;
	struct mm_struct *mm = moved->mm, *others = new_mm(test);

	migrc_check_deferred(mm, addr, read_only(moved->src));
	migrc_check_deferred(mm, addr, read_only(moved->dst));
	migrc_check_range_flushed(mm, addr, addr + PAGE_SIZE);
	/* The later of two new records takes the earlier one's place. */
	migrc_check_deferred(mm, addr, read_only(moved->src));
	migrc_check_set(mm, addr, read_only(moved->dst), 1);
	migrc_check_deferred(mm, addr, read_only(moved->dst));
	/* That place is the last one that these overwrite. */
	for (i = 0; i < MIGRC_RECORDS - 1; i++)
		migrc_check_deferred(others, i << PAGE_SHIFT,
				     read_only(moved->src));
	migrc_check_set(mm, addr, read_only(moved->other), 1);
	KUNIT_EXPECT_EQ(test, heard(test), 0);
}

static void checker_sees_another_page(struct kunit *test)
{
	struct moved *moved = test->priv;

	set(moved->mm, read_only(moved->dst));
	KUNIT_EXPECT_EQ(test, heard(test), 0);
	set(moved->mm, read_only(moved->other));
	KUNIT_EXPECT_EQ(test, heard(test), 1);
}

static void checker_sees_a_file_change(struct kunit *test)
{
	struct moved *moved = test->priv;

	migrc_check_written(page_folio(moved->dst));
	KUNIT_EXPECT_EQ(test, heard(test), 1);
	migrc_check_removed(page_folio(moved->dst));
	KUNIT_EXPECT_EQ(test, heard(test), 1);
}

static void checker_sees_the_source_go(struct kunit *test)
{
	struct moved *moved = test->priv;

	migrc_check_free(moved->src, 0);
	KUNIT_EXPECT_EQ(test, heard(test), 1);
	migrc_check_failed(page_to_pfn(moved->src));
	KUNIT_EXPECT_EQ(test, heard(test), 1);
}

static void checker_sees_a_page_that_stays(struct kunit *test)
{
	s64 before = migrc_check_begin(), after;

	put_into_quarantine(test, 1, NULL, first_memory_node);
	after = migrc_check_begin();
	put_into_quarantine(test, 1, NULL, first_memory_node);
	migrc_check_drained(before);
	KUNIT_EXPECT_EQ(test, heard(test), 0);
	migrc_check_drained(after);
	KUNIT_EXPECT_EQ(test, heard(test), 1);
	__migrc_drain(MIGRC_FAILURE);
	migrc_check_drained(migrc_check_begin());
	KUNIT_EXPECT_EQ(test, heard(test), 0);
}

/* A batched flush does not excuse other PTEs of the same page. */
static void checker_sees_one_that_is_not_batched(struct kunit *test)
{
	struct moved *moved = test->priv;
	struct mm_struct *mm = new_mm(test);

	migrc_check_deferred(mm, ADDR, read_only(moved->src));
	set(mm, read_only(moved->dst));
	migrc_check_batched(mm, ADDR, ADDR + PAGE_SIZE);
	migrc_check_removed(page_folio(moved->dst));
	KUNIT_EXPECT_EQ(test, heard(test), 1);
	migrc_check_batch_flushed();
}

/* Until the flush only the steps of reclaim itself are allowed. */
static void checker_waits_for_a_batched_flush(struct kunit *test)
{
	struct moved *moved = test->priv;

	migrc_check_batched(moved->mm, ADDR, ADDR + PAGE_SIZE);
	migrc_check_removed(page_folio(moved->dst));
	set(moved->mm, read_only(moved->other));
	set(moved->mm, writable(moved->other));
	KUNIT_EXPECT_EQ(test, heard(test), 0);
	set(moved->mm, writable(moved->dst));
	KUNIT_EXPECT_EQ(test, heard(test), 1);
	migrc_check_written(page_folio(moved->dst));
	KUNIT_EXPECT_EQ(test, heard(test), 1);
	folio_set_swapbacked(page_folio(moved->dst));
	migrc_check_written(page_folio(moved->dst));
	KUNIT_EXPECT_EQ(test, heard(test), 0);
	folio_clear_swapbacked(page_folio(moved->dst));
	migrc_check_free(moved->src, 0);
	KUNIT_EXPECT_EQ(test, heard(test), 1);
	migrc_check_batch_flushed();
	set(moved->mm, writable(moved->dst));
	KUNIT_EXPECT_EQ(test, heard(test), 0);
}

static struct kunit_case check_cases[] = {
	KUNIT_CASE(checker_lets_pass_what_is_flushed),
	KUNIT_CASE(checker_lets_pass_after_a_whole_flush),
	KUNIT_CASE(checker_sees_write_permission),
	KUNIT_CASE(checker_sees_write_permission_of_others),
	KUNIT_CASE(checker_lets_pass_what_moves_on),
	KUNIT_CASE(checker_lets_pass_flushes_of_others),
	KUNIT_CASE(checker_lets_pass_after_an_overwrite),
	KUNIT_CASE(checker_sees_another_page),
	KUNIT_CASE(checker_sees_a_file_change),
	KUNIT_CASE(checker_sees_the_source_go),
	KUNIT_CASE(checker_sees_a_page_that_stays),
	KUNIT_CASE(checker_sees_one_that_is_not_batched),
	KUNIT_CASE(checker_waits_for_a_batched_flush),
	{}
};

static struct kunit_suite check_suite = {
	.name = "ferry_migrc_check",
	.init = check_init,
	.test_cases = check_cases,
};

kunit_test_suites(&check_suite);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Tests of the checker of deferred flushes");
