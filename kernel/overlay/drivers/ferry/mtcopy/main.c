// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: mtcopy, the multi-threaded migrator
 *
 * The caller and up to threads - 1 helpers copy a batch together. The batch is
 * divided into chunks, and each CPU claims the next chunk when it has copied
 * the last: a fast CPU copies more, and a helper that never gets a CPU copies
 * nothing and delays nothing. A helper leaves when its CPU has another task to
 * run. Such a task may be a worker: WQ_CPU_INTENSIVE lets the workqueue run
 * other works of high priority on the CPU, as those of the block layer, while
 * the helper copies.
 *
 * If no other CPU is idle, mtcopy rejects the batch: to copy it here would gain
 * nothing over the copy in the move phase. The exception are non-temporal
 * stores, which the move phase does not use.
 *
 * Life cycle of a job:
 *
 *   1. ferry_mtcopy_begin() takes an idle job and picks idle CPUs.
 *   2. ferry_mtcopy_start() queues the job's works on those CPUs. The works run
 *      there, because the workqueue is per CPU, and each is woken by the
 *      caller, not by another helper.
 *   3. The caller, in ferry_mtcopy_step(), and the helpers claim and copy
 *      chunks until nothing is left.
 *   4. ferry_mtcopy_end() waits for the chunks that helpers are copying,
 *      cancels the works that did not start, and returns.
 *   5. A work that did start may outlast the batch. It holds a reference to the
 *      job, not to the batch, and finds nothing to claim.
 *   6. The job is idle again when the last reference is dropped.
 *
 * A migrator with DMA channels takes part in a job: it claims parts from the
 * back of the batch for them.
 *
 * The wait is short because a helper claims and copies a chunk with preemption
 * off: a running CPU is copying every claimed chunk, and the caller waits for
 * one chunk at most. The caller never waits for the scheduler to run a helper.
 *
 * No helper touches a batch after ferry_mtcopy_end(). A helper increments
 * job->copying before it claims, and a claim is fully ordered. When the caller
 * finds nothing left to claim, a later claim gets nothing, and an earlier one
 * shows in job->copying until its copy is complete.
 *
 * The helpers' time is charged to the task that called ferry_mtcopy_begin() and
 * to its cgroups: see kernel/sched/ferry_account.c. A helper adds the time of a
 * chunk, and of its start before the first, while the caller waits for the
 * chunk. So the sum is complete when ferry_mtcopy_end() charges it. A helper
 * that found nothing to claim is not charged.
 *
 * The copy allocates no memory: the jobs exist from module load on. If all are
 * in use, the batch is rejected.
 *
 * Locking: the copy takes no lock of mtcopy's. queue_work_on() takes the lock
 * of the worker pool.
 */

#include <kunit/visibility.h>
#include <linux/atomic.h>
#include <linux/cpumask.h>
#include <linux/ferry.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/processor.h>
#include <linux/sched.h>
#include <linux/sched/clock.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "internal.h"

/*
 * To wake a helper takes a few microseconds, in which one CPU copies some tens
 * of KiB. A helper is picked when its share is several times that.
 */
#define MTCOPY_HELPER_BYTES	FERRY_SHARED_BYTES

/*
 * Helpers copy a chunk with preemption off: at 10 GB/s for 7 us, and on a
 * machine that copies 1 GB/s for less than a tick. A claim is an atomic
 * operation, 0.1 us.
 */
#define MTCOPY_CHUNK		SZ_64K

#define MTCOPY_MAX_JOBS		64

struct mtcopy_helper {
	struct work_struct work;
	struct mtcopy_job *job;
	unsigned int cpu;
};

/**
 * struct mtcopy_job - a batch that several CPUs copy
 * @batch:	the batch; valid only for a CPU that has claimed a part of it
 * @claims:	its parts; nothing to claim before ferry_mtcopy_start()
 * @nontemporal: use non-temporal stores
 * @nr_helpers:	works of the job
 * @cursor:	the caller's, see mtcopy_chunk()
 * @copying:	helpers that may have claimed a chunk and not finished it
 * @helper_ns:	time that helpers copied
 * @refs:	the caller, and each queued or running work; 0 if the job is
 *		idle
 * @helpers:	works
 */
struct mtcopy_job {
	struct ferry_batch *batch;
	struct ferry_claims claims;
	bool nontemporal;
	unsigned int nr_helpers;
	unsigned int cursor;
	atomic_t copying;
	atomic64_t helper_ns;
	atomic_t refs;
	struct mtcopy_helper helpers[MTCOPY_MAX_HELPERS];
};

static struct workqueue_struct *mtcopy_wq;
static struct mtcopy_job *mtcopy_jobs;
static unsigned int mtcopy_nr_jobs;

static struct mtcopy_job *mtcopy_job_get(void)
{
	unsigned int i, first = raw_smp_processor_id();
	struct mtcopy_job *job;

	for (i = 0; i < mtcopy_nr_jobs; i++) {
		job = &mtcopy_jobs[(first + i) % mtcopy_nr_jobs];
		if (!atomic_read(&job->refs) &&
		    atomic_cmpxchg_acquire(&job->refs, 0, 1) == 0)
			return job;
	}
	return NULL;
}

static void mtcopy_job_put(struct mtcopy_job *job)
{
	/* Pairs with the acquire in mtcopy_job_get(). */
	WARN_ON_ONCE(atomic_dec_return_release(&job->refs) < 0);
}

static void mtcopy_helper_end(struct mtcopy_helper *helper)
{
	mtcopy_release_helper(helper->cpu);
	mtcopy_job_put(helper->job);
}

/* Claim and copy one chunk. Return its bytes, 0 if nothing was left. */
static size_t mtcopy_claim(struct mtcopy_job *job, unsigned int *cursor)
{
	size_t start, bytes;

	bytes = ferry_claim(&job->claims, max(MTCOPY_CHUNK, PAGE_SIZE), false,
			    &start);
	if (bytes)
		mtcopy_chunk(job->batch, start, start + bytes, cursor,
			     job->nontemporal);
	return bytes;
}

/*
 * Asked with preemption off: the end of that reschedules, after which no flag
 * is left. The lazy one is set if a task of the same class wants the CPU.
 */
static bool mtcopy_cpu_is_wanted(void)
{
	return need_resched() || test_thread_flag(TIF_NEED_RESCHED_LAZY);
}

/*
 * As mtcopy_claim(), and ferry_mtcopy_end() waits for the copy. Its time begins
 * at *start, or now. Return whether the helper may claim another.
 */
VISIBLE_IF_KUNIT bool mtcopy_helper_chunk(struct mtcopy_job *job,
					  unsigned int *cursor, u64 *start)
{
	bool more;

	/* The caller spins until the chunk is copied. */
	guard(preempt)();
	if (!*start)
		*start = local_clock();
	atomic_inc(&job->copying);
	/* Before the claim, which is fully ordered: see the DOC block. */
	smp_mb__after_atomic();
	more = mtcopy_claim(job, cursor);
	if (more)
		atomic64_add(local_clock() - *start, &job->helper_ns);
	*start = 0;
	/* Pairs with the acquire in ferry_mtcopy_end(). */
	atomic_dec_return_release(&job->copying);
	return more && !mtcopy_cpu_is_wanted();
}

static void mtcopy_work(struct work_struct *work)
{
	struct mtcopy_helper *helper =
		container_of(work, struct mtcopy_helper, work);
	unsigned int cursor = 0;
	u64 start = local_clock();

	while (mtcopy_helper_chunk(helper->job, &cursor, &start))
		;
	mtcopy_helper_end(helper);
}

/**
 * ferry_mtcopy_begin() - prepare to copy a batch by CPUs
 * @batch:	the batch
 * @max_helpers: CPUs beside the calling one that may take part
 *
 * Picks CPUs that are idle, as many as the knob threads allows and the size of
 * the batch suggests.
 *
 * Context: any. Does not allocate.
 * Return: a job for ferry_mtcopy_start() or ferry_mtcopy_end(), or NULL if all
 * jobs are in use.
 */
struct mtcopy_job *ferry_mtcopy_begin(struct ferry_batch *batch,
				      unsigned int max_helpers)
{
	unsigned int nr = min3(READ_ONCE(mtcopy_tuning.threads) - 1,
			       batch->bytes / MTCOPY_HELPER_BYTES,
			       (size_t)max_helpers);
	struct mtcopy_job *job = mtcopy_job_get();
	unsigned int cpus[MTCOPY_MAX_HELPERS];

	if (!job)
		return NULL;
	nr = mtcopy_pick_helpers(batch->dst_nid, cpus, nr, batch->bytes);
	job->batch = batch;
	job->claims.nr_pages = 0;
	atomic64_set(&job->claims.ends, 0);
	job->nontemporal = mtcopy_use_nontemporal(batch);
	job->nr_helpers = nr;
	job->cursor = 0;
	while (nr--)
		job->helpers[nr].cpu = cpus[nr];
	return job;
}
EXPORT_SYMBOL_GPL(ferry_mtcopy_begin);

/** ferry_mtcopy_nr_helpers() - how many other CPUs take part in a job */
unsigned int ferry_mtcopy_nr_helpers(const struct mtcopy_job *job)
{
	return job->nr_helpers;
}
EXPORT_SYMBOL_GPL(ferry_mtcopy_nr_helpers);

/**
 * ferry_mtcopy_start() - let the helpers copy
 * @job: from ferry_mtcopy_begin()
 *
 * Sets the status of each pair to 0. Each copier of a part of the folio that
 * fails sets it to an error.
 *
 * Context: process context, all folios locked.
 * Return: the claims of the batch, valid until ferry_mtcopy_end().
 */
struct ferry_claims *ferry_mtcopy_start(struct mtcopy_job *job)
{
	struct ferry_batch *batch = job->batch;
	unsigned int i;

	for (i = 0; i < batch->nr; i++)
		batch->pairs[i].status = 0;
	ferry_claims_init(&job->claims, batch);
	atomic64_set(&job->helper_ns, 0);
	atomic_add(job->nr_helpers, &job->refs);
	for (i = 0; i < job->nr_helpers; i++)
		queue_work_on(job->helpers[i].cpu, mtcopy_wq,
			      &job->helpers[i].work);
	return &job->claims;
}
EXPORT_SYMBOL_GPL(ferry_mtcopy_start);

/**
 * ferry_mtcopy_step() - copy one chunk by the calling CPU
 * @job: from ferry_mtcopy_begin(), started
 *
 * Context: process context, in the task that called ferry_mtcopy_start().
 * Return: the bytes copied, 0 if nothing is left to claim.
 */
size_t ferry_mtcopy_step(struct mtcopy_job *job)
{
	return mtcopy_claim(job, &job->cursor);
}
EXPORT_SYMBOL_GPL(ferry_mtcopy_step);

static void mtcopy_end_helpers(struct mtcopy_job *job)
{
	unsigned int i;
	u64 ns;

	/* Nothing is left to claim, so no more helpers can enter the batch. */
	while (atomic_read_acquire(&job->copying)) {
		cpu_relax();
		cond_resched();
	}
	for (i = 0; i < job->nr_helpers; i++)
		if (cancel_work(&job->helpers[i].work))
			mtcopy_helper_end(&job->helpers[i]);
	ns = atomic64_read(&job->helper_ns);
	if (ns) {
		ferry_account_helpers(ns);
		atomic64_add(ns, &mtcopy_helper_ns);
	}
}

/**
 * ferry_mtcopy_end() - copy all that is not claimed, and wait for the helpers
 * @job: from ferry_mtcopy_begin(); if it was not started, nothing is copied
 *
 * Context: process context, in the task that called ferry_mtcopy_begin().
 */
void ferry_mtcopy_end(struct mtcopy_job *job)
{
	unsigned int i;

	while (ferry_mtcopy_step(job))
		cond_resched();
	if (job->claims.nr_pages)
		mtcopy_end_helpers(job);
	else
		for (i = 0; i < job->nr_helpers; i++)
			mtcopy_release_helper(job->helpers[i].cpu);
	mtcopy_job_put(job);
}
EXPORT_SYMBOL_GPL(ferry_mtcopy_end);

/**
 * mtcopy_copy() - copy a batch with the calling CPU and idle ones
 * @batch: the batch
 *
 * Context: process context, all folios locked. Does not allocate.
 * Return: 0, or -EAGAIN if no other CPU is idle, or threads or the size of the
 * batch forbid to use one.
 */
int mtcopy_copy(struct ferry_batch *batch)
{
	struct mtcopy_job *job = ferry_mtcopy_begin(batch, MTCOPY_MAX_HELPERS);
	bool gains = job && (job->nr_helpers || job->nontemporal);

	batch->serial = !job || !job->nr_helpers;
	if (gains)
		ferry_mtcopy_start(job);
	if (job)
		ferry_mtcopy_end(job);
	return gains ? 0 : -EAGAIN;
}

static const struct ferry_migrator mtcopy_migrator = {
	.name = "mtcopy",
	.owner = THIS_MODULE,
	.groups = mtcopy_groups,
	.copy = mtcopy_copy,
};

static int __init mtcopy_jobs_init(void)
{
	unsigned int i, k;

	mtcopy_nr_jobs = min(num_possible_cpus(), MTCOPY_MAX_JOBS);
	mtcopy_jobs = kvzalloc_objs(*mtcopy_jobs, mtcopy_nr_jobs);
	if (!mtcopy_jobs)
		return -ENOMEM;
	for (i = 0; i < mtcopy_nr_jobs; i++) {
		for (k = 0; k < MTCOPY_MAX_HELPERS; k++) {
			INIT_WORK(&mtcopy_jobs[i].helpers[k].work, mtcopy_work);
			mtcopy_jobs[i].helpers[k].job = &mtcopy_jobs[i];
		}
	}
	return 0;
}

static int __init mtcopy_init(void)
{
	int err = mtcopy_jobs_init();

	if (err)
		return err;
	err = -ENOMEM;
	mtcopy_wq = alloc_workqueue("ferry_mtcopy", WQ_PERCPU | WQ_HIGHPRI |
				    WQ_CPU_INTENSIVE, 0);
	if (!mtcopy_wq)
		goto free_jobs;
	mtcopy_calibrate();
	err = mtcopy_helpers_init();
	if (err)
		goto free_wq;
	err = ferry_register(&mtcopy_migrator);
	if (!err)
		return 0;
	mtcopy_helpers_exit();
free_wq:
	destroy_workqueue(mtcopy_wq);
free_jobs:
	kvfree(mtcopy_jobs);
	return err;
}
module_init(mtcopy_init);

static void __exit mtcopy_exit(void)
{
	ferry_unregister(&mtcopy_migrator);
	/* Waits for the works that outlasted their batch. */
	destroy_workqueue(mtcopy_wq);
	mtcopy_helpers_exit();
	kvfree(mtcopy_jobs);
}
module_exit(mtcopy_exit);

MODULE_DESCRIPTION("Multi-threaded folio copy for page migration");
MODULE_LICENSE("GPL");
