// SPDX-License-Identifier: GPL-2.0
/* The order in which CPUs are asked to help: all of them, near ones first, caches in turn. */

#include <kunit/test.h>
#include <linux/cpumask.h>
#include <linux/ferry.h>
#include <linux/nodemask.h>
#include <linux/sched/topology.h>
#include <linux/topology.h>

static int spread_distance(unsigned int cpu, int nid)
{
	return node_distance(cpu_to_node(cpu), nid);
}

/* Which of those behind its cache a CPU is, in CPU order. */
static unsigned int spread_rank(unsigned int cpu)
{
	unsigned int other, rank = 0;

	for_each_online_cpu(other)
		rank += other < cpu && cpus_share_cache(cpu, other);
	return rank;
}

static unsigned int spread_number(unsigned int cpu)
{
	return cpu;
}

static void spread_names_each_once(struct kunit *test)
{
	unsigned int *cpus = kunit_kcalloc(test, nr_cpu_ids, sizeof(*cpus), GFP_KERNEL);
	unsigned int i, k, nr, spread;

	KUNIT_ASSERT_NOT_NULL(test, cpus);
	for (spread = FERRY_SPREAD_LLC; spread <= FERRY_SPREAD_NONE; spread++) {
		nr = ferry_spread_cpus(0, spread, cpus, nr_cpu_ids);
		KUNIT_EXPECT_EQ(test, nr, num_online_cpus());
		for (i = 0; i < nr; i++)
			for (k = i + 1; k < nr; k++)
				KUNIT_EXPECT_NE(test, cpus[i], cpus[k]);
	}
}

/* By distance, then by what @second says of a CPU. */
static void spread_in_order(struct kunit *test, enum ferry_spread spread,
			    unsigned int (*second)(unsigned int cpu))
{
	unsigned int *cpus = kunit_kcalloc(test, nr_cpu_ids, sizeof(*cpus), GFP_KERNEL);
	unsigned int i, nr;
	int nid;

	KUNIT_ASSERT_NOT_NULL(test, cpus);
	for_each_online_node(nid) {
		nr = ferry_spread_cpus(nid, spread, cpus, nr_cpu_ids);
		for (i = 1; i < nr; i++) {
			int last = spread_distance(cpus[i - 1], nid);
			int next = spread_distance(cpus[i], nid);

			KUNIT_EXPECT_LE(test, last, next);
			if (last == next)
				KUNIT_EXPECT_LE(test, second(cpus[i - 1]), second(cpus[i]));
		}
	}
}

static void spread_near_first(struct kunit *test)
{
	spread_in_order(test, FERRY_SPREAD_NODE, spread_number);
}

static void spread_takes_caches_in_turn(struct kunit *test)
{
	spread_in_order(test, FERRY_SPREAD_LLC, spread_rank);
}

static struct kunit_case spread_cases[] = {
	KUNIT_CASE(spread_names_each_once),
	KUNIT_CASE(spread_near_first),
	KUNIT_CASE(spread_takes_caches_in_turn),
	{}
};

static struct kunit_suite spread_suite = {
	.name = "ferry_spread",
	.test_cases = spread_cases,
};

kunit_test_suite(spread_suite);
