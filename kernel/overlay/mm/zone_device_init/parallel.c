// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Initialisation of a range on several CPUs
 *
 * The first binding of a device stores to memory that is in no cache and that,
 * in a guest, the host has yet to allocate: each page of it faults to the host.
 * That scales with the CPUs. The caller and some unbound work items claim
 * chunks until none is left. The caller cancels a work item that no CPU has run
 * yet instead of waiting for it; for one that runs, it waits at most as long as
 * a chunk takes.
 *
 * The helpers are bounded: each is queued for another CPU, those of the node
 * first and, if a user task binds the driver, only those that its affinity and
 * its cpuset allow. An unbound workqueue uses only the pod of that CPU: by
 * default, CPUs that share a cache, or a part of them. It prefers these, so a
 * helper may run on a CPU that the task may not use. The workqueue keeps
 * helpers off isolated CPUs. All ranges that are initialised at once share
 * MEMMAP_THREADS_MAX helpers, so that a boot that probes many devices at once
 * does not flood the machine.
 *
 * padata_do_multithreaded() does not fit: it is __init, and it waits for work
 * items that have not started.
 *
 * Life cycle:
 *
 * 1. memmap_init_parallel() puts a struct memmap_parallel on its stack.
 * 2. It reserves helpers, as many as are free, and queues them.
 * 3. The caller and the helpers claim chunks and initialise them. Each drains
 *    its own non-temporal stores at the end of a chunk.
 * 4. The caller cancels or awaits each helper and returns the reservation. No
 *    helper runs after memmap_init_parallel().
 *
 * Locking: memmap_parallel.lock protects the cursor and the calibration. It is
 * a leaf. cpus_read_lock() keeps CPUs online while work items are queued; the
 * caller holds no hotplug lock.
 */

#include <linux/atomic.h>
#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "internal.h"

struct memmap_parallel {
	const struct memmap_job *job;
	spinlock_t lock;	/* protects what follows */
	unsigned long next;	/* first PFN that is not claimed */
	struct memmap_calibration calib;
};

struct memmap_helper {
	struct work_struct work;
	struct memmap_parallel *parallel;
};

struct memmap_chunk {
	unsigned long pfn;
	unsigned long end_pfn;
	enum memmap_method method;
	bool trial;		/* the time counts for the calibration */
};

/* Helpers of all ranges. */
static atomic_t memmap_nr_helpers;

static bool memmap_claim_chunk(struct memmap_parallel *parallel,
			       struct memmap_chunk *chunk)
{
	const struct memmap_job *job = parallel->job;

	guard(spinlock)(&parallel->lock);
	chunk->pfn = parallel->next;
	if (chunk->pfn >= job->range->end_pfn)
		return false;
	chunk->end_pfn = memmap_chunk_end(job->range, chunk->pfn);
	chunk->method = job->method;
	chunk->trial = false;
	if (chunk->method == MEMMAP_AUTO)
		chunk->method = memmap_calibrate_next(&parallel->calib,
						      &chunk->trial);
	parallel->next = chunk->end_pfn;
	return true;
}

static void memmap_init_chunks(struct memmap_parallel *parallel)
{
	struct memmap_chunk chunk;

	while (memmap_claim_chunk(parallel, &chunk)) {
		u64 ns = ktime_get_ns();

		memmap_init_chunk(parallel->job, chunk.method, chunk.pfn,
				  chunk.end_pfn);
		ns = ktime_get_ns() - ns;
		scoped_guard(spinlock, &parallel->lock)
			memmap_calibrate_add(&parallel->calib, chunk.method,
					     chunk.trial, ns);
		cond_resched();
	}
}

static void memmap_helper_fn(struct work_struct *work)
{
	memmap_init_chunks(container_of(work, struct memmap_helper,
					work)->parallel);
}

/*
 * Queue at most @nr helpers, each for another CPU, those of the node first. An
 * unbound work item without a CPU stays near the CPU that queues it, and may
 * wait for the caller there. The CPU only selects the pod near which the helper
 * starts, and may go offline before the work item runs.
 *
 * Return: the number of helpers queued.
 */
static unsigned int memmap_queue_helpers(struct memmap_parallel *parallel,
					 struct memmap_helper *helpers,
					 unsigned int nr)
{
	unsigned int self = raw_smp_processor_id(), queued = 0, i, cpu;
	int nid = parallel->job->range->nid;
	struct memmap_helper *helper;

	guard(cpus_read_lock)();
	for (i = 0; i < num_online_cpus() && queued < nr; i++) {
		cpu = cpumask_local_spread(i, nid);
		if (cpu == self || cpu >= nr_cpu_ids ||
		    !cpumask_test_cpu(cpu, memmap_allowed_cpus()))
			continue;
		if (!atomic_add_unless(&memmap_nr_helpers, 1,
				       MEMMAP_THREADS_MAX))
			break;
		helper = &helpers[queued++];
		helper->parallel = parallel;
		INIT_WORK(&helper->work, memmap_helper_fn);
		queue_work_on(cpu, system_dfl_wq, &helper->work);
	}
	return queued;
}

/**
 * memmap_init_parallel() - initialise a range
 * @job: the range, its template, the method
 * @threads: CPUs that may work at once, the caller's included
 *
 * Context: process context, may sleep. Allocates memory; if that fails, the
 * caller initialises the range alone.
 */
void memmap_init_parallel(const struct memmap_job *job, unsigned int threads)
{
	struct memmap_parallel parallel = {
		.job = job,
		.next = job->range->start_pfn,
	};
	struct memmap_helper *helpers = NULL;
	unsigned int nr = 0, i;

	spin_lock_init(&parallel.lock);
	if (threads > 1)
		helpers = kzalloc_objs(*helpers, threads - 1);
	if (helpers)
		nr = memmap_queue_helpers(&parallel, helpers, threads - 1);
	memmap_init_chunks(&parallel);
	for (i = 0; i < nr; i++)
		cancel_work_sync(&helpers[i].work);
	atomic_sub(nr, &memmap_nr_helpers);
	kfree(helpers);
}
