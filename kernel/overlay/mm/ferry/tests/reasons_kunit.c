// SPDX-License-Identifier: GPL-2.0
/* The selection, the counters and the limits of each reason. */

#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/gfp.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>
#include <linux/time64.h>
#include <linux/workqueue.h>

#include "../internal.h"

#define FOLIOS	32

static int enabled;

static int reasons_enable(void)
{
	enabled++;
	return 0;
}

static void reasons_disable(void)
{
	enabled--;
}

static int reasons_copy(struct ferry_batch *batch)
{
	unsigned int i;

	for (i = 0; i < batch->nr; i++)
		batch->pairs[i].status = 0;
	return 0;
}

static const struct ferry_migrator first = {
	.name = "kunit_first",
	.enable = reasons_enable,
	.disable = reasons_disable,
	.copy = reasons_copy,
};

static const struct ferry_migrator second = {
	.name = "kunit_second",
	.copy = reasons_copy,
};

static void add_folios(struct kunit *test, struct list_head *folios)
{
	unsigned int i;

	for (i = 0; i < FOLIOS; i++) {
		struct folio *folio = folio_alloc(GFP_KERNEL, 0);

		KUNIT_ASSERT_NOT_NULL(test, folio);
		folio->migrate_info = 0;
		list_add(&folio->lru, folios);
	}
}

static void free_folios(struct list_head *folios)
{
	struct folio *folio, *next;

	list_for_each_entry_safe(folio, next, folios, lru) {
		list_del(&folio->lru);
		folio->migrate_info = 0;
		folio_put(folio);
	}
}

static s64 folios_counted(enum migrate_reason reason)
{
	int idx = srcu_read_lock(&ferry_srcu);
	struct ferry_entry *entry = ferry_selected(reason);
	s64 count = -1;

	if (entry)
		count = atomic64_read(entry->stats[reason].counts +
				      FERRY_FOLIOS);
	srcu_read_unlock(&ferry_srcu, idx);
	return count;
}

/* Copy folios for a reason; return how many its migrator counted for it. */
static s64 copy_for(struct kunit *test, enum migrate_reason reason)
{
	const struct ferry_gather gather = { .active = true };
	s64 before = folios_counted(reason);
	LIST_HEAD(src);
	LIST_HEAD(dst);

	add_folios(test, &src);
	add_folios(test, &dst);
	ferry_copy_folios(&gather, &src, &dst, reason);
	free_folios(&src);
	free_folios(&dst);
	return folios_counted(reason) - before;
}

static void expect_migrator(struct kunit *test, enum migrate_reason reason,
			    const struct ferry_migrator *ops)
{
	int idx = srcu_read_lock(&ferry_srcu);
	struct ferry_entry *entry = ferry_selected(reason);

	KUNIT_EXPECT_PTR_EQ(test, entry ? entry->ops : NULL, ops);
	srcu_read_unlock(&ferry_srcu, idx);
}

static int reasons_init(struct kunit *test)
{
	enabled = 0;
	KUNIT_ASSERT_EQ(test, ferry_register(&first), 0);
	KUNIT_ASSERT_EQ(test, ferry_register(&second), 0);
	return 0;
}

static void reasons_exit(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, ferry_select(FERRY_DEFAULT, "off"), 0);
	KUNIT_EXPECT_EQ(test, ferry_select(MR_SYSCALL, "inherit"), 0);
	KUNIT_EXPECT_EQ(test, ferry_select(MR_COMPACTION, "inherit"), 0);
	ferry_unregister(&second);
	ferry_unregister(&first);
	KUNIT_EXPECT_EQ(test, enabled, 0);
}

static void reasons_inherit(struct kunit *test)
{
	expect_migrator(test, MR_DEMOTION, NULL);
	KUNIT_EXPECT_EQ(test, ferry_select(FERRY_DEFAULT, first.name), 0);
	expect_migrator(test, MR_DEMOTION, &first);
	KUNIT_EXPECT_EQ(test, ferry_select(MR_COMPACTION, second.name), 0);
	expect_migrator(test, MR_COMPACTION, &second);
	KUNIT_EXPECT_EQ(test, ferry_select(MR_COMPACTION, "off"), 0);
	expect_migrator(test, MR_COMPACTION, NULL);
	expect_migrator(test, MR_DEMOTION, &first);
	KUNIT_EXPECT_EQ(test, ferry_select(MR_COMPACTION, "inherit\n"), 0);
	expect_migrator(test, MR_COMPACTION, &first);
}

static void reasons_reject_words(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, ferry_select(MR_COMPACTION, second.name), 0);
	KUNIT_EXPECT_EQ(test, ferry_select(MR_COMPACTION, "unknown"), -EINVAL);
	KUNIT_EXPECT_EQ(test, ferry_select(FERRY_DEFAULT, "inherit"), -EINVAL);
	expect_migrator(test, MR_COMPACTION, &second);
	expect_migrator(test, MR_DEMOTION, NULL);
}

/* Batches of two migrators at the same time are counted for their reasons. */
static void reasons_copy_by_their_own(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, ferry_select(MR_SYSCALL, first.name), 0);
	KUNIT_EXPECT_EQ(test, ferry_select(MR_COMPACTION, second.name), 0);
	KUNIT_EXPECT_EQ(test, copy_for(test, MR_SYSCALL), FOLIOS);
	KUNIT_EXPECT_EQ(test, copy_for(test, MR_COMPACTION), FOLIOS);
	KUNIT_EXPECT_EQ(test, folios_counted(MR_SYSCALL), FOLIOS);
	KUNIT_EXPECT_EQ(test, copy_for(test, MR_DEMOTION), 0);
	KUNIT_EXPECT_TRUE(test, ferry_selects_offload(MR_SYSCALL));
	KUNIT_EXPECT_FALSE(test, ferry_selects_offload(MR_DEMOTION));
}

/* A migrator is enabled while anything selects it. */
static void reasons_enable_once(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, ferry_select(MR_SYSCALL, first.name), 0);
	KUNIT_EXPECT_EQ(test, ferry_select(MR_COMPACTION, first.name), 0);
	KUNIT_EXPECT_EQ(test, ferry_select(MR_COMPACTION, first.name), 0);
	KUNIT_EXPECT_EQ(test, enabled, 1);
	KUNIT_EXPECT_EQ(test, ferry_select(MR_SYSCALL, "inherit"), 0);
	KUNIT_EXPECT_EQ(test, enabled, 1);
	KUNIT_EXPECT_EQ(test, ferry_select(MR_COMPACTION, "off"), 0);
	KUNIT_EXPECT_EQ(test, enabled, 0);
}

/* Reasons that selected a migrator inherit when it is gone. */
static void reasons_unregister(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, ferry_select(FERRY_DEFAULT, second.name), 0);
	KUNIT_EXPECT_EQ(test, ferry_select(MR_COMPACTION, first.name), 0);
	ferry_unregister(&first);
	expect_migrator(test, MR_COMPACTION, &second);
	KUNIT_EXPECT_EQ(test, enabled, 0);
	KUNIT_EXPECT_EQ(test, ferry_register(&first), 0);
}

/* Callers collect more for a migrator that gains from it, and for runs. */
static void reasons_long_lists(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, ferry_list_pages(MR_DEMOTION, 32, 1024), 32);
	KUNIT_EXPECT_EQ(test, ferry_select(FERRY_DEFAULT, "kernel"), 0);
	KUNIT_EXPECT_EQ(test, ferry_list_pages(MR_DEMOTION, 32, 1024), 32);
	KUNIT_EXPECT_EQ(test, ferry_select(MR_COMPACTION, first.name), 0);
	KUNIT_EXPECT_EQ(test, ferry_list_pages(MR_DEMOTION, 32, 1024), 32);
	KUNIT_EXPECT_EQ(test, ferry_list_pages(MR_COMPACTION, 32, 1024), 512);
	KUNIT_EXPECT_EQ(test, ferry_list_pages(MR_COMPACTION, 32, 64), 64);
	KUNIT_EXPECT_EQ(test, ferry_list_pages(MR_COMPACTION, 32, 8), 32);
	ferry_want_long_lists(true);
	KUNIT_EXPECT_EQ(test, ferry_list_pages(MR_DEMOTION, 32, 1024), 512);
	ferry_want_long_lists(false);
	KUNIT_EXPECT_EQ(test, ferry_list_pages(MR_DEMOTION, 32, 1024), 32);
}

/* 256 KiB are due after 250 ms, of which a burst may be forgiven. */
static void limit_is_obeyed(struct kunit *test)
{
	u64 slept = ferry_slept_ns(MR_SYSCALL), start;

	ferry_set_rate_limit(MR_SYSCALL, SZ_1M);
	KUNIT_EXPECT_FALSE(test, ferry_must_wait(MR_SYSCALL));
	start = ktime_get_ns();
	ferry_charge(MR_SYSCALL, SZ_256K);
	KUNIT_EXPECT_TRUE(test, ferry_must_wait(MR_SYSCALL));
	KUNIT_EXPECT_FALSE(test, ferry_must_wait(MR_DAMON));
	KUNIT_EXPECT_EQ(test, ferry_throttle(MR_SYSCALL, NULL), 0);
	KUNIT_EXPECT_GE(test, ktime_get_ns() - start, 100 * NSEC_PER_MSEC);
	KUNIT_EXPECT_GE(test, ferry_slept_ns(MR_SYSCALL) - slept,
			50 * NSEC_PER_MSEC);
	ferry_charge(MR_SYSCALL, SZ_1G);
	ferry_set_rate_limit(MR_SYSCALL, 0);
	KUNIT_EXPECT_FALSE(test, ferry_must_wait(MR_SYSCALL));
	/* No task is charged without a limit. */
	ferry_charge(MR_SYSCALL, SZ_1G);
	ferry_set_rate_limit(MR_SYSCALL, SZ_1M);
	KUNIT_EXPECT_FALSE(test, ferry_must_wait(MR_SYSCALL));
	ferry_set_rate_limit(MR_SYSCALL, 0);
}

/* However much moved without a look at the limit. */
static void limit_has_longest_debt(struct kunit *test)
{
	ferry_set_rate_limit(MR_SYSCALL, SZ_1M);
	ferry_charge(MR_SYSCALL, 16ULL * SZ_1G);
	KUNIT_EXPECT_LE(test, ferry_pause_ns(MR_SYSCALL), 60 * NSEC_PER_SEC);
	ferry_charge(MR_SYSCALL, 16ULL * SZ_1G);
	KUNIT_EXPECT_LE(test, ferry_pause_ns(MR_SYSCALL), 60 * NSEC_PER_SEC);
	KUNIT_EXPECT_GT(test, ferry_pause_ns(MR_SYSCALL), 30 * NSEC_PER_SEC);
	ferry_set_rate_limit(MR_SYSCALL, 0);
	/* A region of DAMON's may take longer, and no task waits for it. */
	ferry_set_rate_limit(MR_DAMON, SZ_1M);
	ferry_charge(MR_DAMON, SZ_1G);
	KUNIT_EXPECT_GT(test, ferry_pause_ns(MR_DAMON), 900 * NSEC_PER_SEC);
	ferry_set_rate_limit(MR_DAMON, 0);
}

static void throttle_worker(struct work_struct *work)
{
	ferry_throttle(MR_SYSCALL, NULL);
}

/* Tasks wait for a worker, that of cpusets for one. */
static void limit_spares_workers(struct kunit *test)
{
	u64 start = ktime_get_ns();
	struct work_struct work;

	INIT_WORK_ONSTACK(&work, throttle_worker);
	ferry_set_rate_limit(MR_SYSCALL, SZ_1M);
	ferry_charge(MR_SYSCALL, 4 * SZ_1M);
	KUNIT_EXPECT_TRUE(test, ferry_must_wait(MR_SYSCALL));
	queue_work(system_dfl_wq, &work);
	flush_work(&work);
	destroy_work_on_stack(&work);
	KUNIT_EXPECT_LT(test, ktime_get_ns() - start, NSEC_PER_SEC);
	ferry_set_rate_limit(MR_SYSCALL, 0);
}

/* The memory of a dead process is not kept for the limit. */
static void limit_frees_the_dead(struct kunit *test)
{
	struct mm_struct *mm = mm_alloc();
	u64 start = ktime_get_ns();

	KUNIT_ASSERT_NOT_NULL(test, mm);
	ferry_set_rate_limit(MR_SYSCALL, SZ_1M);
	KUNIT_EXPECT_EQ(test, ferry_throttle(MR_SYSCALL, mm), 0);
	ferry_charge(MR_SYSCALL, 4 * SZ_1M);
	KUNIT_EXPECT_EQ(test, ferry_throttle(MR_SYSCALL, mm), -ESRCH);
	KUNIT_EXPECT_LT(test, ktime_get_ns() - start, NSEC_PER_SEC);
	ferry_set_rate_limit(MR_SYSCALL, 0);
	mmput(mm);
}

/* The slice has the size that makes pauses neither long nor short. */
static void slice_follows_pause(struct kunit *test)
{
	struct ferry_slice slice = {};
	unsigned long first_slice;

	KUNIT_EXPECT_EQ(test, ferry_slice_next(&slice, MR_DAMON, 1000), 1000);
	ferry_set_rate_limit(MR_DAMON, SZ_1M);
	first_slice = ferry_slice_next(&slice, MR_DAMON, 1000);
	KUNIT_EXPECT_LT(test, first_slice, 100);
	KUNIT_EXPECT_EQ(test, ferry_slice_next(&slice, MR_DAMON, 1000),
			2 * first_slice);
	ferry_charge(MR_DAMON, SZ_1M);
	KUNIT_EXPECT_EQ(test, ferry_slice_next(&slice, MR_DAMON, 1000),
			first_slice);
	KUNIT_EXPECT_EQ(test, ferry_slice_next(&slice, MR_DAMON, 1), 1);
	ferry_set_rate_limit(MR_DAMON, 0);
}

/* A scheme is skipped, not delayed, and has all that was due since the last. */
static void limit_skips_schemes(struct kunit *test)
{
	u64 start = ktime_get_ns(), skipped = ferry_slept_ns(MR_DAMON), since;

	KUNIT_EXPECT_FALSE(test, ferry_must_skip(MR_DAMON, USEC_PER_SEC));
	ferry_set_rate_limit(MR_DAMON, SZ_1M);
	KUNIT_EXPECT_FALSE(test, ferry_must_skip(MR_DAMON, USEC_PER_SEC));
	msleep(500);
	ferry_charge(MR_DAMON, 400 * SZ_1K);
	KUNIT_EXPECT_FALSE(test, ferry_must_skip(MR_DAMON, USEC_PER_SEC));
	ferry_charge(MR_DAMON, SZ_64M);
	KUNIT_EXPECT_TRUE(test, ferry_must_skip(MR_DAMON, USEC_PER_SEC));
	since = ktime_get_ns();
	msleep(20);
	since = ktime_get_ns() - since;
	KUNIT_EXPECT_TRUE(test, ferry_must_skip(MR_DAMON, ULONG_MAX));
	KUNIT_EXPECT_GE(test, ferry_slept_ns(MR_DAMON) - skipped, since);
	KUNIT_EXPECT_LT(test, ktime_get_ns() - start, 20 * NSEC_PER_SEC);
	ferry_set_rate_limit(MR_DAMON, 0);
	KUNIT_EXPECT_FALSE(test, ferry_must_skip(MR_DAMON, USEC_PER_SEC));
}

/* A scheme that was late by many intervals has no more than two of them. */
static void limit_forgets_old_intervals(struct kunit *test)
{
	ferry_set_rate_limit(MR_DAMON, SZ_1M);
	KUNIT_EXPECT_FALSE(test, ferry_must_skip(MR_DAMON, USEC_PER_MSEC));
	msleep(1000);
	ferry_charge(MR_DAMON, SZ_1M - 100 * SZ_1K);
	KUNIT_EXPECT_TRUE(test, ferry_must_skip(MR_DAMON, USEC_PER_MSEC));
	ferry_set_rate_limit(MR_DAMON, 0);
}

/* The short interval of a scheme does not cost another its share. */
static void limit_is_of_all_schemes(struct kunit *test)
{
	ferry_set_rate_limit(MR_DAMON, SZ_1M);
	KUNIT_EXPECT_FALSE(test, ferry_must_skip(MR_DAMON, USEC_PER_SEC));
	msleep(500);
	KUNIT_EXPECT_FALSE(test, ferry_must_skip(MR_DAMON, USEC_PER_MSEC));
	ferry_charge(MR_DAMON, SZ_1K);
	ferry_charge(MR_DAMON, 300 * SZ_1K);
	KUNIT_EXPECT_FALSE(test, ferry_must_skip(MR_DAMON, USEC_PER_SEC));
	ferry_set_rate_limit(MR_DAMON, 0);
}

/* While no kdamond looks, nothing is skipped. */
static void skipped_time_is_of_schemes(struct kunit *test)
{
	u64 skipped = ferry_slept_ns(MR_DAMON);

	ferry_set_rate_limit(MR_DAMON, SZ_1M);
	ferry_charge(MR_DAMON, SZ_64M);
	KUNIT_EXPECT_TRUE(test, ferry_must_skip(MR_DAMON, USEC_PER_MSEC));
	msleep(1000);
	KUNIT_EXPECT_TRUE(test, ferry_must_skip(MR_DAMON, USEC_PER_MSEC));
	KUNIT_EXPECT_LT(test, ferry_slept_ns(MR_DAMON) - skipped,
			NSEC_PER_SEC / 2);
	ferry_set_rate_limit(MR_DAMON, 0);
}

static void queue_half_slice(struct kunit *test, struct list_head *folios)
{
	struct folio *folio = folio_alloc(GFP_KERNEL,
					  get_order(FERRY_SLICE_BYTES / 2));

	KUNIT_ASSERT_NOT_NULL(test, folio);
	folio->migrate_info = 0;
	list_add_tail(&folio->lru, folios);
}

/* A walk ends where a slice is queued, however far it went without memory. */
static void range_ends_after_a_slice(struct kunit *test)
{
	struct ferry_range range = { .next = SZ_1G };
	LIST_HEAD(folios);

	ferry_set_rate_limit(MR_SYSCALL, SZ_1M);
	KUNIT_EXPECT_FALSE(test, ferry_range_full(&range, &folios, SZ_32M));
	queue_half_slice(test, &folios);
	KUNIT_EXPECT_FALSE(test, ferry_range_full(&range, &folios, SZ_64M));
	/* A folio is not counted twice. */
	KUNIT_EXPECT_FALSE(test, ferry_range_full(&range, &folios, SZ_128M));
	KUNIT_EXPECT_EQ(test, range.next, SZ_1G);
	queue_half_slice(test, &folios);
	KUNIT_EXPECT_FALSE(test, ferry_range_full(NULL, &folios, SZ_256M));
	KUNIT_EXPECT_TRUE(test, ferry_range_full(&range, &folios, SZ_256M));
	KUNIT_EXPECT_EQ(test, range.next, SZ_256M);
	free_folios(&folios);
	/* The next part begins without folios. */
	range.next = SZ_1G;
	queue_half_slice(test, &folios);
	KUNIT_EXPECT_FALSE(test, ferry_range_full(&range, &folios, SZ_512M));
	free_folios(&folios);
	ferry_set_rate_limit(MR_SYSCALL, 0);
}

struct range_work {
	struct work_struct work;
	struct list_head folios;
	bool full;
};

static void range_worker(struct work_struct *work)
{
	struct range_work *of = container_of(work, struct range_work, work);
	struct ferry_range range = {};

	of->full = ferry_range_full(&range, &of->folios, SZ_32M);
}

/* Neither does a limit of DAMON end a walk, nor any limit that of a worker. */
static void range_is_of_the_limited(struct kunit *test)
{
	struct ferry_range range = {};
	struct range_work of = { .full = true };

	INIT_LIST_HEAD(&of.folios);
	queue_half_slice(test, &of.folios);
	queue_half_slice(test, &of.folios);
	KUNIT_EXPECT_FALSE(test, ferry_range_full(&range, &of.folios, SZ_32M));
	ferry_set_rate_limit(MR_DAMON, SZ_1M);
	KUNIT_EXPECT_FALSE(test, ferry_range_full(&range, &of.folios, SZ_32M));
	ferry_set_rate_limit(MR_SYSCALL, SZ_1M);
	INIT_WORK_ONSTACK(&of.work, range_worker);
	queue_work(system_dfl_wq, &of.work);
	flush_work(&of.work);
	destroy_work_on_stack(&of.work);
	KUNIT_EXPECT_FALSE(test, of.full);
	KUNIT_EXPECT_TRUE(test, ferry_range_full(&range, &of.folios, SZ_32M));
	ferry_set_rate_limit(MR_SYSCALL, 0);
	ferry_set_rate_limit(MR_DAMON, 0);
	free_folios(&of.folios);
}

static void set_fatal_signal(void)
{
	spin_lock_irq(&current->sighand->siglock);
	sigaddset(&current->pending.signal, SIGKILL);
	set_thread_flag(TIF_SIGPENDING);
	spin_unlock_irq(&current->sighand->siglock);
}

/* A fatal signal ends the call between two parts, even without a wait. */
static void range_ends_for_a_signal(struct kunit *test)
{
	ferry_set_rate_limit(MR_SYSCALL, SZ_1M);
	KUNIT_EXPECT_FALSE(test, ferry_must_wait(MR_SYSCALL));
	KUNIT_EXPECT_EQ(test, ferry_range_begin(NULL), 0);
	set_fatal_signal();
	KUNIT_EXPECT_EQ(test, ferry_range_begin(NULL), -EINTR);
	flush_signals(current);
	ferry_set_rate_limit(MR_SYSCALL, 0);
}

/* A batch may end on a CPU whose clock is behind that of its begin. */
static void locked_time_is_not_negative(struct kunit *test)
{
	struct ferry_locked *locked = &ferry_locked[MR_DAMON];
	s64 shortest = atomic64_read(&locked->batches[0]);
	s64 ns = atomic64_read(&locked->ns);

	ferry_count_locked(MR_DAMON, -1);
	KUNIT_EXPECT_EQ(test, atomic64_read(&locked->batches[0]), shortest + 1);
	KUNIT_EXPECT_EQ(test, atomic64_read(&locked->ns), ns);
}

static struct kunit_case reasons_cases[] = {
	KUNIT_CASE(reasons_inherit),
	KUNIT_CASE(reasons_reject_words),
	KUNIT_CASE(reasons_copy_by_their_own),
	KUNIT_CASE(reasons_enable_once),
	KUNIT_CASE(reasons_unregister),
	KUNIT_CASE(reasons_long_lists),
	KUNIT_CASE(limit_is_obeyed),
	KUNIT_CASE(limit_has_longest_debt),
	KUNIT_CASE(limit_spares_workers),
	KUNIT_CASE(limit_frees_the_dead),
	KUNIT_CASE(slice_follows_pause),
	KUNIT_CASE(locked_time_is_not_negative),
	KUNIT_CASE(limit_skips_schemes),
	KUNIT_CASE(limit_forgets_old_intervals),
	KUNIT_CASE(limit_is_of_all_schemes),
	KUNIT_CASE(skipped_time_is_of_schemes),
	KUNIT_CASE(range_ends_after_a_slice),
	KUNIT_CASE(range_is_of_the_limited),
	KUNIT_CASE(range_ends_for_a_signal),
	{}
};

static struct kunit_suite reasons_suite = {
	.name = "ferry_reasons",
	.init = reasons_init,
	.exit = reasons_exit,
	.test_cases = reasons_cases,
};

kunit_test_suite(reasons_suite);
