// SPDX-License-Identifier: GPL-2.0
/* The order of helper CPUs: each CPU once, near ones first, caches in turn. */

#include <kunit/test.h>
#include <linux/cpumask.h>
#include <linux/ferry.h>
#include <linux/nodemask.h>
#include <linux/sched/topology.h>
#include <linux/topology.h>

static int placement_distance(unsigned int cpu, int nid)
{
	return node_distance(cpu_to_node(cpu), nid);
}

/* Number of CPUs behind the same cache that come before a CPU. */
static unsigned int placement_rank(unsigned int cpu)
{
	unsigned int other, rank = 0;

	for_each_online_cpu(other)
		rank += other < cpu && cpus_share_cache(cpu, other);
	return rank;
}

static void placement_names_each_once(struct kunit *test)
{
	unsigned int *cpus;
	unsigned int i, k, nr;

	cpus = kunit_kcalloc(test, nr_cpu_ids, sizeof(*cpus), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, cpus);
	nr = ferry_place_cpus(0, cpus, nr_cpu_ids);
	KUNIT_EXPECT_EQ(test, nr, num_online_cpus());
	for (i = 0; i < nr; i++)
		for (k = i + 1; k < nr; k++)
			KUNIT_EXPECT_NE(test, cpus[i], cpus[k]);
}

static void placement_near_first(struct kunit *test)
{
	unsigned int *cpus;
	unsigned int i, nr;
	int nid;

	cpus = kunit_kcalloc(test, nr_cpu_ids, sizeof(*cpus), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, cpus);
	for_each_online_node(nid) {
		nr = ferry_place_cpus(nid, cpus, nr_cpu_ids);
		for (i = 1; i < nr; i++)
			KUNIT_EXPECT_LE(test,
					placement_distance(cpus[i - 1], nid),
					placement_distance(cpus[i], nid));
	}
}

/* Of CPUs at the same distance, by rank behind the cache, then by number. */
static void placement_takes_caches_in_turn(struct kunit *test)
{
	unsigned int *cpus;
	unsigned int i, nr;
	int nid;

	cpus = kunit_kcalloc(test, nr_cpu_ids, sizeof(*cpus), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, cpus);
	for_each_online_node(nid) {
		nr = ferry_place_cpus(nid, cpus, nr_cpu_ids);
		for (i = 1; i < nr; i++) {
			unsigned int last = cpus[i - 1], next = cpus[i];
			unsigned int last_rank, rank;

			if (placement_distance(last, nid) !=
			    placement_distance(next, nid))
				continue;
			last_rank = placement_rank(last);
			rank = placement_rank(next);
			KUNIT_EXPECT_LE(test, last_rank, rank);
			if (last_rank == rank)
				KUNIT_EXPECT_LT(test, last, next);
		}
	}
}

static struct kunit_case placement_cases[] = {
	KUNIT_CASE(placement_names_each_once),
	KUNIT_CASE(placement_near_first),
	KUNIT_CASE(placement_takes_caches_in_turn),
	{}
};

static struct kunit_suite placement_suite = {
	.name = "ferry_placement",
	.test_cases = placement_cases,
};

kunit_test_suite(placement_suite);
