// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Where helper CPUs are
 *
 * One core seldom draws the memory bandwidth of a node, and the cores behind one last-level
 * cache often share a link that is narrower than the memory: on a Zen 3 EPYC eight threads
 * in one cache domain moved 11 GB/s, spread over the domains 37 (the batch copy series, v2).
 * So helpers are taken from the caches in turn, and from the nodes in order of distance to
 * the destination, whose stores are the ones that wait.
 *
 * Lock order: the CPU hotplug lock is held by the caller or not needed; none is taken.
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

static unsigned int ferry_places(int nid, enum ferry_spread spread,
				 struct ferry_place *places, unsigned int max)
{
	unsigned int cpu, nr = 0;

	for_each_online_cpu(cpu) {
		if (nr == max)
			break;
		cond_resched();
		/* Unbound works do not run on isolated CPUs, however idle. */
		if (!housekeeping_cpu(cpu, HK_TYPE_DOMAIN))
			continue;
		places[nr++] = (struct ferry_place) {
			.distance = spread == FERRY_SPREAD_NONE ? 0 :
				    node_distance(cpu_to_node(cpu), nid),
			.rank = spread == FERRY_SPREAD_LLC ? ferry_llc_rank(cpu) : 0,
			.cpu = cpu,
		};
	}
	return nr;
}

/**
 * ferry_spread_cpus() - order the online CPUs for copying to a node
 * @nid:	destination node
 * @spread:	how to choose
 * @cpus:	receives the CPUs, best first
 * @max:	room in @cpus
 *
 * The order goes stale when CPUs come and go; callers refresh it then. Takes quadratic
 * time in the number of CPUs, so it is for set-up, not for a batch.
 *
 * Context: process context. Allocates memory, may sleep.
 * Return: number of CPUs in @cpus, 0 if memory is short.
 */
unsigned int ferry_spread_cpus(int nid, enum ferry_spread spread,
			       unsigned int *cpus, unsigned int max)
{
	struct ferry_place *places = kvmalloc_objs(*places, nr_cpu_ids);
	unsigned int i, nr;

	if (!places)
		return 0;
	nr = ferry_places(nid, spread, places, nr_cpu_ids);
	sort(places, nr, sizeof(*places), ferry_place_cmp, NULL);
	nr = min(nr, max);
	for (i = 0; i < nr; i++)
		cpus[i] = places[i].cpu;
	kvfree(places);
	return nr;
}
EXPORT_SYMBOL_GPL(ferry_spread_cpus);

/**
 * ferry_cpu_idle() - has a CPU nothing to run at this moment?
 * @cpu: the CPU
 *
 * A helper sent to a busy CPU takes time from whoever runs there, or waits. One whose virtual
 * CPU is not running would wait for the host.
 *
 * Context: any. The answer is a hint.
 * Return: true if so.
 */
bool ferry_cpu_idle(unsigned int cpu)
{
	return cpu_online(cpu) && idle_cpu(cpu) && !vcpu_is_preempted(cpu);
}
EXPORT_SYMBOL_GPL(ferry_cpu_idle);
