// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: mtcopy, the multi-threaded migrator
 *
 * The caller and up to threads - 1 helpers copy a batch together. The batch is
 * divided into chunks, and each CPU claims the next chunk when it has copied
 * the last: a fast CPU copies more, and a helper that never gets a CPU copies
 * nothing and delays nothing.
 *
 * Life cycle of a job:
 *
 *   1. The caller takes an idle job and queues its works on the helper CPUs.
 *   2. The caller and the helpers copy until no chunk is left to claim.
 *   3. The caller waits for the chunks that helpers are copying, cancels the
 *      works that did not start, and returns.
 *   4. A work that did start may outlast the batch. It holds a reference to the
 *      job, not to the batch, and finds no chunk to claim.
 *   5. The job is idle again when the last reference is dropped.
 *
 * The wait is short because a helper claims and copies a chunk with preemption
 * off: a running CPU is copying every claimed chunk, and the caller waits for
 * one chunk at most. The caller never waits for the scheduler to run a helper.
 *
 * No helper touches a batch that mtcopy_copy() has returned. A claim is a fully
 * ordered atomic operation on job->next, and a helper increments job->copying
 * before it claims. When the caller has seen the last chunk claimed, a later
 * claim gets none, and an earlier one shows in job->copying until its copy is
 * complete.
 *
 * The copy allocates no memory: the jobs exist from module load on. If all are
 * in use, the caller copies alone.
 *
 * Locking: the copy takes no lock of mtcopy's. queue_work_on() takes the lock
 * of the worker pool.
 */

#include <linux/atomic.h>
#include <linux/cpumask.h>
#include <linux/ferry.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/processor.h>
#include <linux/sched.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "internal.h"

/*
 * To wake a helper takes a few microseconds, in which one CPU copies some tens
 * of KiB. mtcopy_copy() asks for a helper when its share is several times that.
 */
#define MTCOPY_HELPER_BYTES	SZ_256K

#define MTCOPY_MAX_HELPERS	(MTCOPY_MAX_THREADS - 1)
#define MTCOPY_MAX_JOBS		64

struct mtcopy_job;

struct mtcopy_helper {
	struct work_struct work;
	struct mtcopy_job *job;
};

/**
 * struct mtcopy_job - a batch that several CPUs copy
 * @batch:	the batch; valid only for a CPU that has claimed a chunk
 * @nr_chunks:	its chunks
 * @nontemporal: use non-temporal stores
 * @next:	next chunk to claim; at or above @nr_chunks none is left
 * @copying:	helpers that may have claimed a chunk and not finished it
 * @refs:	the caller, and each queued or running work; 0 if the job is
 *		idle
 * @helpers:	works
 */
struct mtcopy_job {
	struct ferry_batch *batch;
	unsigned int nr_chunks;
	bool nontemporal;
	atomic_t next;
	atomic_t copying;
	atomic_t refs;
	struct mtcopy_helper helpers[MTCOPY_MAX_HELPERS];
};

static struct workqueue_struct *mtcopy_wq;
static struct mtcopy_job *mtcopy_jobs;
static unsigned int mtcopy_nr_jobs;

static struct mtcopy_job *mtcopy_job_get(void)
{
	struct mtcopy_job *job;
	unsigned int i;

	for (i = 0; i < mtcopy_nr_jobs; i++) {
		job = mtcopy_jobs +
		      (raw_smp_processor_id() + i) % mtcopy_nr_jobs;
		if (!atomic_read(&job->refs) &&
		    atomic_cmpxchg_acquire(&job->refs, 0, 1) == 0)
			return job;
	}
	return NULL;
}

static void mtcopy_job_put(struct mtcopy_job *job)
{
	WARN_ON_ONCE(atomic_dec_return_release(&job->refs) < 0);
}

/* Claim and copy one chunk. Return false if none was left. */
static bool mtcopy_claim(struct mtcopy_job *job, unsigned int *cursor)
{
	unsigned int chunk = atomic_fetch_inc(&job->next);

	if (chunk >= job->nr_chunks)
		return false;
	mtcopy_chunk(job->batch, chunk, cursor, job->nontemporal);
	return true;
}

/* As mtcopy_claim(), and the caller of mtcopy_copy() waits for the copy. */
static bool mtcopy_helper_chunk(struct mtcopy_job *job, unsigned int *cursor)
{
	bool more;

	/* The caller spins until the chunk is copied. */
	guard(preempt)();
	atomic_inc(&job->copying);
	/* Before the claim, which is fully ordered: see the DOC block. */
	smp_mb__after_atomic();
	more = mtcopy_claim(job, cursor);
	/* Pairs with the acquire in mtcopy_copy_parallel(). */
	atomic_dec_return_release(&job->copying);
	return more;
}

static void mtcopy_work(struct work_struct *work)
{
	struct mtcopy_job *job =
		container_of(work, struct mtcopy_helper, work)->job;
	unsigned int cursor = 0;

	while (mtcopy_helper_chunk(job, &cursor))
		cond_resched();
	mtcopy_job_put(job);
}

static void mtcopy_copy_parallel(struct mtcopy_job *job, unsigned int wanted)
{
	unsigned int cpus[MTCOPY_MAX_HELPERS];
	unsigned int i, nr, cursor = 0;

	atomic_set(&job->next, 0);
	nr = mtcopy_pick_helpers(job->batch->dst_nid, cpus, wanted,
				 job->batch->bytes);
	job->batch->serial = !nr;
	atomic_add(nr, &job->refs);
	for (i = 0; i < nr; i++)
		queue_work_on(cpus[i], mtcopy_wq, &job->helpers[i].work);

	while (mtcopy_claim(job, &cursor))
		cond_resched();
	/* All chunks are claimed, so no more helpers can enter the batch. */
	while (atomic_read_acquire(&job->copying)) {
		cpu_relax();
		cond_resched();
	}

	while (nr--)
		if (cancel_work(&job->helpers[nr].work))
			mtcopy_job_put(job);
	mtcopy_job_put(job);
}

static void mtcopy_copy_serial(struct ferry_batch *batch, bool nontemporal)
{
	unsigned int chunk, cursor = 0, nr = mtcopy_nr_chunks(batch);

	batch->serial = true;
	for (chunk = 0; chunk < nr; chunk++) {
		mtcopy_chunk(batch, chunk, &cursor, nontemporal);
		cond_resched();
	}
}

/**
 * mtcopy_copy() - copy a batch with the calling CPU and idle ones
 * @batch: the batch
 *
 * Context: process context, all folios locked. Does not allocate.
 * Return: 0.
 */
int mtcopy_copy(struct ferry_batch *batch)
{
	unsigned int helpers = min(READ_ONCE(mtcopy_tuning.threads) - 1,
				   batch->bytes / MTCOPY_HELPER_BYTES);
	bool nontemporal = mtcopy_use_nontemporal(batch);
	struct mtcopy_job *job = helpers ? mtcopy_job_get() : NULL;
	unsigned int i;

	/* Complete unless a chunk fails. */
	for (i = 0; i < batch->nr; i++)
		batch->pairs[i].status = 0;
	if (!job) {
		mtcopy_copy_serial(batch, nontemporal);
		return 0;
	}
	job->batch = batch;
	job->nr_chunks = mtcopy_nr_chunks(batch);
	job->nontemporal = nontemporal;
	mtcopy_copy_parallel(job, helpers);
	return 0;
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
	mtcopy_wq = alloc_workqueue("ferry_mtcopy", WQ_UNBOUND | WQ_HIGHPRI, 0);
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
