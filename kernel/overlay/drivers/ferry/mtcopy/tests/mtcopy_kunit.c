// SPDX-License-Identifier: GPL-2.0
/*
 * mtcopy copies every byte once, with any sizes, threads and stores, and no
 * longer uses the batch when it returns.
 */

#include <kunit/static_stub.h>
#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/copy_nontemporal.h>
#include <linux/delay.h>
#include <linux/highmem.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "../internal.h"

/* Orders for chunks of several folios, folios of several chunks, and both. */
static const unsigned int mtcopy_orders[] = {
	0, 0, 1, 4, 0, 9, 3, 0, 0, 5, 2, 9, 0,
};

static struct mtcopy_tuning mtcopy_saved;

static void mtcopy_fill(struct folio *folio, u32 seed)
{
	u32 *words = folio_address(folio);
	size_t i;

	for (i = 0; i < folio_size(folio) / sizeof(*words); i++)
		words[i] = seed + i;
}

static struct ferry_batch *mtcopy_batch(struct kunit *test)
{
	struct ferry_batch *batch;
	unsigned int i;

	batch = kunit_kzalloc(test, sizeof(*batch), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, batch);
	for (i = 0; i < ARRAY_SIZE(mtcopy_orders); i++) {
		struct ferry_pair *pair = &batch->pairs[i];

		pair->src = folio_alloc(GFP_KERNEL, mtcopy_orders[i]);
		pair->dst = folio_alloc(GFP_KERNEL, mtcopy_orders[i]);
		KUNIT_ASSERT_NOT_NULL(test, pair->src);
		KUNIT_ASSERT_NOT_NULL(test, pair->dst);
		pair->offset = batch->bytes;
		pair->status = -EINPROGRESS;
		batch->bytes += folio_size(pair->src);
		batch->nr++;
		mtcopy_fill(pair->src, get_random_u32());
	}
	return batch;
}

static void mtcopy_batch_free(struct ferry_batch *batch)
{
	while (batch->nr--) {
		folio_put(batch->pairs[batch->nr].src);
		folio_put(batch->pairs[batch->nr].dst);
	}
}

static void mtcopy_batch_clear(struct ferry_batch *batch)
{
	unsigned int i;

	for (i = 0; i < batch->nr; i++) {
		memset(folio_address(batch->pairs[i].dst), 0xa5,
		       folio_size(batch->pairs[i].dst));
		batch->pairs[i].status = -EINPROGRESS;
	}
}

static bool mtcopy_batch_complete(const struct ferry_batch *batch)
{
	unsigned int i;

	for (i = 0; i < batch->nr; i++) {
		const struct ferry_pair *pair = &batch->pairs[i];

		if (pair->status || memcmp(folio_address(pair->dst),
					   folio_address(pair->src),
					   folio_size(pair->src)))
			return false;
	}
	return true;
}

/* A batch that is rejected is not touched. */
static bool mtcopy_batch_untouched(const struct ferry_batch *batch)
{
	unsigned int i;

	for (i = 0; i < batch->nr; i++) {
		const struct ferry_pair *pair = &batch->pairs[i];

		if (pair->status != -EINPROGRESS ||
		    memchr_inv(folio_address(pair->dst), 0xa5,
			       folio_size(pair->dst)))
			return false;
	}
	return true;
}

/* Copy a cleared batch; false if that went wrong. */
static bool mtcopy_right(struct ferry_batch *batch)
{
	switch (mtcopy_copy(batch)) {
	case 0:
		return mtcopy_batch_complete(batch);
	case -EAGAIN:
		return mtcopy_batch_untouched(batch);
	}
	return false;
}

static void mtcopy_all_settings(struct kunit *test)
{
	static const unsigned int threads[] = { 1, 2, 3, MTCOPY_MAX_THREADS };
	struct ferry_batch *batch = mtcopy_batch(test);
	unsigned int i, nontemporal;

	for (i = 0; i < ARRAY_SIZE(threads); i++) {
		for (nontemporal = MTCOPY_NEVER; nontemporal <= MTCOPY_AUTO;
		     nontemporal++) {
			mtcopy_tuning.threads = threads[i];
			mtcopy_tuning.nontemporal = nontemporal;
			KUNIT_EXPECT_EQ(test, mtcopy_helpers_refresh(), 0);
			mtcopy_batch_clear(batch);
			KUNIT_EXPECT_TRUE_MSG(test, mtcopy_right(batch),
					      "threads %u nontemporal %u",
					      threads[i], nontemporal);
		}
	}
	mtcopy_batch_free(batch);
}

/* mtcopy shares a large batch as soon as another CPU is idle. */
static void mtcopy_uses_helpers(struct kunit *test)
{
	struct ferry_batch *batch = mtcopy_batch(test);
	unsigned int round, shared = 0;

	mtcopy_tuning.threads = 2;
	mtcopy_tuning.nontemporal = MTCOPY_NEVER;
	for (round = 0; round < 2000 && !shared; round++) {
		shared += !mtcopy_copy(batch);
		cond_resched();
	}
	mtcopy_batch_free(batch);
	if (num_online_cpus() == 1)
		kunit_skip(test, "there is no other CPU");
	KUNIT_EXPECT_GT(test, shared, 0);
}

/* With one thread there is nothing to gain but non-temporal stores. */
static void mtcopy_alone(struct kunit *test)
{
	struct ferry_batch *batch = mtcopy_batch(test);

	mtcopy_tuning.threads = 1;
	mtcopy_tuning.nontemporal = MTCOPY_NEVER;
	mtcopy_batch_clear(batch);
	KUNIT_EXPECT_EQ(test, mtcopy_copy(batch), -EAGAIN);
	KUNIT_EXPECT_TRUE(test, batch->serial);
	KUNIT_EXPECT_TRUE(test, mtcopy_batch_untouched(batch));
	mtcopy_tuning.nontemporal = MTCOPY_ALWAYS;
	if (copy_page_nontemporal_possible()) {
		KUNIT_EXPECT_EQ(test, mtcopy_copy(batch), 0);
		KUNIT_EXPECT_TRUE(test, batch->serial);
		KUNIT_EXPECT_TRUE(test, mtcopy_batch_complete(batch));
	}
	mtcopy_batch_free(batch);
}

static void mtcopy_nontemporal_words(struct kunit *test)
{
	struct ferry_batch *batch;

	batch = kunit_kzalloc(test, sizeof(*batch), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, batch);
	batch->reason = MR_SYSCALL;
	mtcopy_tuning.nontemporal = MTCOPY_ALWAYS;
	KUNIT_EXPECT_EQ(test, mtcopy_use_nontemporal(batch),
			copy_page_nontemporal_possible());
	mtcopy_tuning.nontemporal = MTCOPY_AUTO;
	KUNIT_EXPECT_FALSE(test, mtcopy_use_nontemporal(batch));
	mtcopy_tuning.nontemporal = MTCOPY_NEVER;
	batch->reason = MR_DEMOTION;
	KUNIT_EXPECT_FALSE(test, mtcopy_use_nontemporal(batch));
}

/* The last word of each 4 KiB, from the end, where helpers write last. */
static u32 *mtcopy_late_word(struct folio *folio, unsigned int i)
{
	return folio_address(folio) + folio_size(folio) - i * SZ_4K -
	       sizeof(u32);
}

/*
 * When mtcopy_copy() returns, the copy is complete and no helper writes any
 * more. A late helper would still write the last chunks, so the test reads
 * these first, and at once.
 */
static void mtcopy_no_late_writes(struct kunit *test)
{
	struct ferry_batch *batch = mtcopy_batch(test);
	struct ferry_pair *last = &batch->pairs[batch->nr - 2];
	unsigned int round, i, late = 0;

	mtcopy_tuning.threads = MTCOPY_MAX_THREADS;
	mtcopy_tuning.nontemporal = MTCOPY_NEVER;
	for (round = 0; round < 2000; round++) {
		for (i = 0; i < 64; i++)
			*mtcopy_late_word(last->dst, i) = 0;
		if (mtcopy_copy(batch))
			continue;
		for (i = 0; i < 64; i++)
			late += READ_ONCE(*mtcopy_late_word(last->dst, i)) !=
				*mtcopy_late_word(last->src, i);
		cond_resched();
	}
	KUNIT_EXPECT_EQ(test, late, 0);
	mtcopy_batch_free(batch);
}

/* A task that keeps a CPU from running a helper. */
struct mtcopy_holder {
	struct task_struct *task;
	struct completion held;
	struct completion ended;
	bool end;
};

static int mtcopy_hold_cpu(void *data)
{
	struct mtcopy_holder *holder = data;

	scoped_guard(preempt) {
		complete(&holder->held);
		while (!READ_ONCE(holder->end))
			cpu_relax();
	}
	complete(&holder->ended);
	return 0;
}

/* All threads exist before the first one holds a CPU, maybe kthreadd's. */
static struct mtcopy_holder *mtcopy_hold_others(struct kunit *test)
{
	struct mtcopy_holder *holders, *holder;
	unsigned int cpu, here = smp_processor_id();

	holders = kunit_kcalloc(test, nr_cpu_ids, sizeof(*holders), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, holders);
	for_each_online_cpu(cpu) {
		holder = &holders[cpu];
		init_completion(&holder->held);
		init_completion(&holder->ended);
		holder->task = cpu == here ? NULL :
			       kthread_create_on_cpu(mtcopy_hold_cpu, holder,
						     cpu, "mtcopy_hold/%u");
		KUNIT_ASSERT_FALSE(test, IS_ERR(holder->task));
	}
	for_each_online_cpu(cpu) {
		holder = &holders[cpu];
		if (!holder->task)
			continue;
		wake_up_process(holder->task);
		wait_for_completion(&holder->held);
	}
	return holders;
}

static void mtcopy_release_others(struct mtcopy_holder *holders)
{
	unsigned int cpu;

	for (cpu = 0; cpu < nr_cpu_ids; cpu++) {
		if (!holders[cpu].task)
			continue;
		WRITE_ONCE(holders[cpu].end, true);
		wait_for_completion(&holders[cpu].ended);
	}
}

/* Other CPUs are idle only now and then. */
static struct mtcopy_job *mtcopy_job_with_helper(struct ferry_batch *batch)
{
	struct mtcopy_job *job;
	unsigned int round;

	for (round = 0; round < 2000; round++) {
		job = ferry_mtcopy_begin(batch, 1);
		if (job && ferry_mtcopy_nr_helpers(job))
			return job;
		if (job)
			ferry_mtcopy_end(job);
		cond_resched();
	}
	return NULL;
}

/*
 * A CPU in a deep idle state, or one that was taken since it was picked, runs
 * its helper late. The caller copies all and does not wait.
 */
static void mtcopy_late_helper_delays_nothing(struct kunit *test)
{
	struct ferry_batch *batch = mtcopy_batch(test);
	struct mtcopy_holder *holders;
	struct mtcopy_job *job;

	mtcopy_tuning.threads = 2;
	mtcopy_tuning.nontemporal = MTCOPY_NEVER;
	mtcopy_batch_clear(batch);
	migrate_disable();
	job = mtcopy_job_with_helper(batch);
	if (job) {
		holders = mtcopy_hold_others(test);
		ferry_mtcopy_start(job);
		ferry_mtcopy_end(job);
		KUNIT_EXPECT_TRUE(test, mtcopy_batch_complete(batch));
		mtcopy_release_others(holders);
	}
	migrate_enable();
	mtcopy_batch_free(batch);
	if (num_online_cpus() == 1)
		kunit_skip(test, "there is no other CPU");
	KUNIT_EXPECT_NOT_NULL(test, job);
}

/* A task that becomes runnable on a helper's CPU waits for one chunk. */
static void mtcopy_helper_leaves(struct kunit *test)
{
	struct ferry_batch *batch = mtcopy_batch(test);
	struct mtcopy_job *job = ferry_mtcopy_begin(batch, 0);
	unsigned int cursor = 0;
	u64 start = 0;
	bool more;

	KUNIT_ASSERT_NOT_NULL(test, job);
	ferry_mtcopy_start(job);
	scoped_guard(preempt) {
		set_thread_flag(TIF_NEED_RESCHED_LAZY);
		more = mtcopy_helper_chunk(job, &cursor, &start);
	}
	KUNIT_EXPECT_FALSE(test, more);
	KUNIT_EXPECT_GT(test, ferry_mtcopy_step(job), 0);
	ferry_mtcopy_end(job);
	mtcopy_batch_free(batch);
}

struct mtcopy_racer {
	struct ferry_batch *batch;
	struct completion done;
	unsigned int wrong;
};

static int mtcopy_race(void *data)
{
	struct mtcopy_racer *racer = data;
	unsigned int round;

	for (round = 0; round < 100; round++) {
		mtcopy_batch_clear(racer->batch);
		racer->wrong += !mtcopy_right(racer->batch);
	}
	complete(&racer->done);
	return 0;
}

/* With few CPUs more batches at once than jobs, each with its own helpers. */
static void mtcopy_many_callers(struct kunit *test)
{
	unsigned int i, nr = min(num_possible_cpus() + 2, 16);
	struct mtcopy_racer *racers;
	struct task_struct *task;

	racers = kunit_kcalloc(test, nr, sizeof(*racers), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, racers);
	mtcopy_tuning.threads = 3;
	for (i = 0; i < nr; i++) {
		racers[i].batch = mtcopy_batch(test);
		init_completion(&racers[i].done);
	}
	for (i = 0; i < nr; i++) {
		task = kthread_run(mtcopy_race, &racers[i], "mtcopy_race");
		KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	}
	for (i = 0; i < nr; i++) {
		wait_for_completion(&racers[i].done);
		KUNIT_EXPECT_EQ(test, racers[i].wrong, 0);
		mtcopy_batch_free(racers[i].batch);
	}
}

/* A busy CPU, as the caller's is, is never picked. */
static void mtcopy_helpers_idle(struct kunit *test)
{
	unsigned int *cpus;
	unsigned int i, nr;

	cpus = kunit_kcalloc(test, nr_cpu_ids, sizeof(*cpus), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, cpus);
	migrate_disable();
	nr = mtcopy_pick_helpers(0, cpus, nr_cpu_ids, SZ_1G);
	for (i = 0; i < nr; i++) {
		KUNIT_EXPECT_NE(test, cpus[i], raw_smp_processor_id());
		mtcopy_release_helper(cpus[i]);
	}
	migrate_enable();
}

/* The bytes to copy bound the search: for 0 bytes it checks no CPU. */
static void mtcopy_search_bounded(struct kunit *test)
{
	unsigned int *cpus;
	unsigned int round, nr, idle = 0;

	cpus = kunit_kcalloc(test, nr_cpu_ids, sizeof(*cpus), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, cpus);
	for (round = 0; round < 1000; round++) {
		nr = mtcopy_pick_helpers(0, cpus, nr_cpu_ids, SZ_1G);
		idle += nr;
		while (nr)
			mtcopy_release_helper(cpus[--nr]);
		KUNIT_EXPECT_EQ(test, 0,
				mtcopy_pick_helpers(0, cpus, nr_cpu_ids, 0));
		usleep_range(100, 200);
	}
	if (num_online_cpus() == 1)
		kunit_skip(test, "there is no other CPU");
	KUNIT_EXPECT_GT(test, idle, 0);
}

static bool mtcopy_all_isolated(unsigned int cpu)
{
	return true;
}

/* CPUs that were isolated since the orders were made are passed over. */
static void mtcopy_no_isolated_helpers(struct kunit *test)
{
	unsigned int *cpus;
	unsigned int round, nr, idle = 0, isolated = 0;

	cpus = kunit_kcalloc(test, nr_cpu_ids, sizeof(*cpus), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, cpus);
	for (round = 0; round < 1000; round++) {
		nr = mtcopy_pick_helpers(0, cpus, nr_cpu_ids, SZ_1G);
		idle += nr;
		while (nr)
			mtcopy_release_helper(cpus[--nr]);
		kunit_activate_static_stub(test, mtcopy_is_isolated,
					   mtcopy_all_isolated);
		isolated += mtcopy_pick_helpers(0, cpus, nr_cpu_ids, SZ_1G);
		kunit_deactivate_static_stub(test, mtcopy_is_isolated);
		usleep_range(100, 200);
	}
	KUNIT_EXPECT_EQ(test, isolated, 0);
	if (num_online_cpus() == 1)
		kunit_skip(test, "there is no other CPU");
	KUNIT_EXPECT_GT(test, idle, 0);
}

/* Two batches do not pick the same CPU. */
static void mtcopy_picks_once(struct kunit *test)
{
	unsigned int *cpus, *others;
	unsigned int i, nr, nr_others, round, both = 0;

	cpus = kunit_kcalloc(test, nr_cpu_ids, sizeof(*cpus), GFP_KERNEL);
	others = kunit_kcalloc(test, nr_cpu_ids, sizeof(*others), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, cpus);
	KUNIT_ASSERT_NOT_NULL(test, others);
	for (round = 0; round < 1000; round++) {
		nr = mtcopy_pick_helpers(0, cpus, 1, SZ_1G);
		nr_others = mtcopy_pick_helpers(0, others, nr_cpu_ids, SZ_1G);
		for (i = 0; nr && i < nr_others; i++)
			both += others[i] == cpus[0];
		while (nr)
			mtcopy_release_helper(cpus[--nr]);
		while (nr_others)
			mtcopy_release_helper(others[--nr_others]);
		usleep_range(100, 200);
	}
	KUNIT_EXPECT_EQ(test, both, 0);
}

static int mtcopy_suite_init(struct kunit *test)
{
	mtcopy_saved = mtcopy_tuning;
	return 0;
}

static void mtcopy_suite_exit(struct kunit *test)
{
	mtcopy_tuning = mtcopy_saved;
}

static struct kunit_case mtcopy_cases[] = {
	KUNIT_CASE(mtcopy_all_settings),
	KUNIT_CASE(mtcopy_uses_helpers),
	KUNIT_CASE(mtcopy_alone),
	KUNIT_CASE(mtcopy_picks_once),
	KUNIT_CASE(mtcopy_no_isolated_helpers),
	KUNIT_CASE(mtcopy_nontemporal_words),
	KUNIT_CASE(mtcopy_no_late_writes),
	KUNIT_CASE(mtcopy_late_helper_delays_nothing),
	KUNIT_CASE(mtcopy_helper_leaves),
	KUNIT_CASE(mtcopy_many_callers),
	KUNIT_CASE(mtcopy_helpers_idle),
	KUNIT_CASE(mtcopy_search_bounded),
	{}
};

static struct kunit_suite mtcopy_suite = {
	.name = "ferry_mtcopy",
	.init = mtcopy_suite_init,
	.exit = mtcopy_suite_exit,
	.test_cases = mtcopy_cases,
};

kunit_test_suite(mtcopy_suite);
