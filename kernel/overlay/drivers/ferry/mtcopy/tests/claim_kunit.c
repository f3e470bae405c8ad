// SPDX-License-Identifier: GPL-2.0
/*
 * Each page of a batch is claimed exactly once, from whichever end, by however
 * many tasks.
 */

#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/kthread.h>
#include <linux/mm.h>

#include <linux/ferry_claim.h>

#define CLAIM_PAGES	20000
#define CLAIM_TASKS	4

struct claim_race {
	struct ferry_claims claims;
	atomic_t times[CLAIM_PAGES];
};

struct claim_task {
	struct claim_race *race;
	struct completion done;
	unsigned int nr;
	size_t bytes;
};

static void claims_of(struct ferry_claims *claims, u32 pages)
{
	claims->nr_pages = pages;
	atomic64_set(&claims->ends, 0);
}

static void claim_ends_meet(struct kunit *test)
{
	struct ferry_claims claims;
	size_t start;

	claims_of(&claims, 10);
	KUNIT_EXPECT_EQ(test, ferry_unclaimed(&claims), 10 * PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, ferry_claim(&claims, 4 * PAGE_SIZE, false,
					  &start), 4 * PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, start, 0);
	KUNIT_EXPECT_EQ(test, ferry_claim(&claims, 3 * PAGE_SIZE, true, &start),
			3 * PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, start, 7 * PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, ferry_claim(&claims, 9 * PAGE_SIZE, true, &start),
			3 * PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, start, 4 * PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, ferry_unclaimed(&claims), 0);
	KUNIT_EXPECT_EQ(test, ferry_claim(&claims, PAGE_SIZE, true, &start), 0);
	KUNIT_EXPECT_EQ(test, ferry_claim(&claims, PAGE_SIZE, false, &start),
			0);
}

static void claim_nothing(struct kunit *test)
{
	struct ferry_claims claims;
	size_t start;

	claims_of(&claims, 2);
	KUNIT_EXPECT_EQ(test, ferry_claim(&claims, 0, true, &start), 0);
	KUNIT_EXPECT_EQ(test, ferry_unclaimed(&claims), 2 * PAGE_SIZE);
}

static int claim_race(void *data)
{
	struct claim_task *task = data;
	struct claim_race *race = task->race;
	size_t start, bytes, page;

	while ((bytes = ferry_claim(&race->claims,
				    (1 + task->nr) * PAGE_SIZE, task->nr & 1,
				    &start))) {
		for (page = 0; page < bytes >> PAGE_SHIFT; page++)
			atomic_inc(&race->times[(start >> PAGE_SHIFT) + page]);
		task->bytes += bytes;
	}
	complete(&task->done);
	return 0;
}

/* Half of the tasks claim from each end. */
static void claim_once(struct kunit *test)
{
	struct claim_task tasks[CLAIM_TASKS];
	unsigned int i, wrong = 0;
	struct claim_race *race;
	size_t bytes = 0;

	race = kunit_kzalloc(test, sizeof(*race), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, race);
	claims_of(&race->claims, CLAIM_PAGES);
	for (i = 0; i < CLAIM_TASKS; i++) {
		tasks[i] = (struct claim_task) { .race = race, .nr = i };
		init_completion(&tasks[i].done);
		KUNIT_ASSERT_FALSE(test, IS_ERR(kthread_run(claim_race,
							    &tasks[i],
							    "claim")));
	}
	for (i = 0; i < CLAIM_TASKS; i++) {
		wait_for_completion(&tasks[i].done);
		bytes += tasks[i].bytes;
	}
	for (i = 0; i < CLAIM_PAGES; i++)
		wrong += atomic_read(&race->times[i]) != 1;
	KUNIT_EXPECT_EQ(test, wrong, 0);
	KUNIT_EXPECT_EQ(test, bytes, CLAIM_PAGES * PAGE_SIZE);
}

static struct kunit_case claim_cases[] = {
	KUNIT_CASE(claim_ends_meet),
	KUNIT_CASE(claim_nothing),
	KUNIT_CASE(claim_once),
	{}
};

static struct kunit_suite claim_suite = {
	.name = "ferry_claim",
	.test_cases = claim_cases,
};

kunit_test_suite(claim_suite);
