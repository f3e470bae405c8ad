// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Placement of helper CPUs
 *
 * One core seldom uses the whole memory bandwidth of a node, and the cores
 * behind one last-level cache often share a link that is narrower than the
 * memory: on a Zen 3 EPYC eight threads in one cache domain moved 11 GB/s,
 * spread over the domains 37 GB/s (the batch copy series, v2). So
 * ferry_place_cpus() takes one CPU of each last-level cache in turn. It takes
 * the nodes in order of their distance to the destination, because stores wait
 * for the destination's memory.
 *
 * This file is built in for the sake of idle_cpu() and cpus_share_cache(),
 * which are not exported to modules.
 */

#include <linux/cpumask.h>
#include <linux/export.h>
#include <linux/ferry.h>
#include <linux/nodemask.h>
#include <linux/sched.h>
#include <linux/sched/isolation.h>
#include <linux/sched/topology.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/topology.h>

struct ferry_place {
	int distance;		/* of the CPU's node to the destination */
	unsigned int rank;	/* CPUs of lower number behind the same cache */
	unsigned int cpu;
};

static int ferry_place_cmp(const void *a, const void *b)
{
	const struct ferry_place *x = a, *y = b;

	return cmp_int(x->distance, y->distance) ?:
	       cmp_int(x->rank, y->rank) ?: cmp_int(x->cpu, y->cpu);
}

static unsigned int ferry_llc_rank(unsigned int cpu)
{
	unsigned int other, rank = 0;

	for_each_online_cpu(other) {
		if (other >= cpu)
			break;
		rank += cpus_share_cache(cpu, other);
	}
	return rank;
}

/**
 * ferry_place_cpus() - order the online CPUs for copying to a node
 * @nid:	destination node
 * @cpus:	receives the CPUs, best first
 * @max:	room in @cpus
 *
 * The order is out of date when a CPU goes online or offline; callers then call
 * again. The time is quadratic in the number of CPUs, so this is for set-up and
 * not for each batch.
 *
 * Context: process context. Allocates memory, may sleep.
 * Return: number of CPUs in @cpus, 0 if memory is short.
 */
unsigned int ferry_place_cpus(int nid, unsigned int *cpus, unsigned int max)
{
	struct ferry_place *places = kvmalloc_objs(*places, nr_cpu_ids);
	unsigned int cpu, i, nr = 0;

	if (!places)
		return 0;
	for_each_online_cpu(cpu) {
		if (nr == nr_cpu_ids)
			break;
		cond_resched();
		/* Unbound works do not run on isolated CPUs. */
		if (!housekeeping_cpu(cpu, HK_TYPE_DOMAIN))
			continue;
		places[nr++] = (struct ferry_place) {
			.distance = node_distance(cpu_to_node(cpu), nid),
			.rank = ferry_llc_rank(cpu),
			.cpu = cpu,
		};
	}
	sort(places, nr, sizeof(*places), ferry_place_cmp, NULL);
	nr = min(nr, max);
	for (i = 0; i < nr; i++)
		cpus[i] = places[i].cpu;
	kvfree(places);
	return nr;
}
EXPORT_SYMBOL_GPL(ferry_place_cpus);

/**
 * ferry_cpu_idle() - check that a CPU has nothing to run at this moment
 * @cpu: the CPU
 *
 * A helper on a busy CPU takes time from the task that runs there, or waits. A
 * helper on a virtual CPU that is not running waits for the host.
 *
 * Context: any. The answer is a hint.
 * Return: true if the CPU is online and idle, and runs if it is virtual.
 */
bool ferry_cpu_idle(unsigned int cpu)
{
	return cpu_online(cpu) && idle_cpu(cpu) && !vcpu_is_preempted(cpu);
}
EXPORT_SYMBOL_GPL(ferry_cpu_idle);
