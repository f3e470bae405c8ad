// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Several CPUs for one range
 *
 * The first binding of a device touches memory that nobody has touched: cold caches, and in
 * a guest a fault to the host for each page of it. That scales with the CPUs. The caller and
 * some unbound works claim chunks until none is left. A work that never got a CPU is taken
 * back by the caller, who does not wait for it; one that runs is waited for, as long as a
 * chunk takes.
 *
 * padata_do_multithreaded() would be the tool, were it not for boot only.
 *
 * Life cycle: a crew lives on the caller's stack; no work runs after memmap_crew_init().
 *
 * Lock order: cpus_read_lock() while works are sent, as mem_hotplug_begin() before; then
 * memmap_crew.lock, a leaf.
 */

#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "internal.h"

struct memmap_crew {
	const struct memmap_job *job;
	spinlock_t lock;	/* protects next */
	unsigned long next;	/* the first PFN that nobody has claimed */
};

struct memmap_helper {
	struct work_struct work;
	struct memmap_crew *crew;
};

static bool memmap_claim(struct memmap_crew *crew, unsigned long *pfn, unsigned long *end_pfn)
{
	guard(spinlock)(&crew->lock);
	*pfn = crew->next;
	if (*pfn >= crew->job->range->end_pfn)
		return false;
	crew->next = *end_pfn = memmap_chunk_end(crew->job->range, *pfn);
	return true;
}

static void memmap_crew_work(struct memmap_crew *crew)
{
	unsigned long pfn, end_pfn;

	while (memmap_claim(crew, &pfn, &end_pfn)) {
		memmap_init_chunk(crew->job, crew->job->method, pfn, end_pfn);
		cond_resched();
	}
}

static void memmap_helper_fn(struct work_struct *work)
{
	memmap_crew_work(container_of(work, struct memmap_helper, work)->crew);
}

static void memmap_send(struct memmap_crew *crew, struct memmap_helper *helper, unsigned int cpu)
{
	INIT_WORK(&helper->work, memmap_helper_fn);
	helper->crew = crew;
	queue_work_on(cpu, system_dfl_wq, &helper->work);
}

/*
 * One work for each of @nr CPUs, those of the node first. An unbound work that is left to
 * choose stays near the CPU that queues it, and may wait for the caller there. The CPU is a
 * preference: it may go before the work runs.
 *
 * Returns how many were sent.
 */
static unsigned int memmap_hire(struct memmap_crew *crew, struct memmap_helper *helpers,
				unsigned int nr)
{
	unsigned int self = raw_smp_processor_id(), hired = 0, i, cpu;

	guard(cpus_read_lock)();
	for (i = 0; i < num_online_cpus() && hired < nr; i++) {
		cpu = cpumask_local_spread(i, crew->job->range->nid);
		if (cpu != self && cpu < nr_cpu_ids)
			memmap_send(crew, &helpers[hired++], cpu);
	}
	return hired;
}

static void memmap_dismiss(struct memmap_helper *helpers, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		cancel_work_sync(&helpers[i].work);
}

/**
 * memmap_crew_init() - initialise the rest of a range
 * @job:	the range, its template, how to write
 * @pfn:	first PFN of the rest
 * @threads:	how many may work at once, the caller included
 *
 * Context: process context, may sleep. Allocates memory, and works alone without it.
 */
void memmap_crew_init(const struct memmap_job *job, unsigned long pfn, unsigned int threads)
{
	struct memmap_crew crew = { .job = job, .next = pfn };
	struct memmap_helper *helpers = NULL;
	unsigned int nr = 0;

	spin_lock_init(&crew.lock);
	if (threads > 1)
		helpers = kzalloc_objs(*helpers, threads - 1);
	if (helpers)
		nr = memmap_hire(&crew, helpers, threads - 1);
	memmap_crew_work(&crew);
	memmap_dismiss(helpers, nr);
	kfree(helpers);
}
