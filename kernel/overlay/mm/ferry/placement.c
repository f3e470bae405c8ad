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

/* A last-level cache: one of its CPUs, and how many have a rank. */
struct ferry_llc {
	unsigned int cpu;
	unsigned int nr;
};

static unsigned int ferry_llc_rank(struct ferry_llc *llcs,
				   unsigned int *nr_llcs, unsigned int cpu)
{
	unsigned int i;

	for (i = 0; i < *nr_llcs; i++)
		if (cpus_share_cache(llcs[i].cpu, cpu))
			return llcs[i].nr++;
	llcs[(*nr_llcs)++] = (struct ferry_llc) { .cpu = cpu, .nr = 1 };
	return 0;
}

/* In @places and @llcs there is room for nr_cpu_ids. */
static unsigned int ferry_place_all(int nid, struct ferry_place *places,
				    struct ferry_llc *llcs)
{
	unsigned int cpu, nr = 0, nr_llcs = 0;

	for_each_online_cpu(cpu) {
		if (nr == nr_cpu_ids)
			break;
		cond_resched();
		places[nr++] = (struct ferry_place) {
			.distance = node_distance(cpu_to_node(cpu), nid),
			.rank = ferry_llc_rank(llcs, &nr_llcs, cpu),
			.cpu = cpu,
		};
	}
	return nr;
}

/**
 * ferry_place_cpus() - order the online CPUs for copying to a node
 * @nid:	destination node
 * @cpus:	receives the CPUs, best first
 * @max:	room in @cpus
 *
 * Isolated CPUs are among them, because cpusets isolate others at any time:
 * callers pass over those that are isolated when they need a CPU. The order is
 * out of date when a CPU goes online or offline; callers then call again. The
 * time grows with the CPUs times the caches, so this is for set-up and not for
 * each batch.
 *
 * Context: process context. Allocates memory, may sleep.
 * Return: number of CPUs in @cpus, 0 if memory is short.
 */
unsigned int ferry_place_cpus(int nid, unsigned int *cpus, unsigned int max)
{
	struct ferry_place *places = kvmalloc_objs(*places, nr_cpu_ids);
	struct ferry_llc *llcs = kvmalloc_objs(*llcs, nr_cpu_ids);
	unsigned int i, nr = 0;

	if (places && llcs)
		nr = ferry_place_all(nid, places, llcs);
	sort(places, nr, sizeof(*places), ferry_place_cmp, NULL);
	nr = min(nr, max);
	for (i = 0; i < nr; i++)
		cpus[i] = places[i].cpu;
	kvfree(llcs);
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
