// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: mtcopy, copy by many CPUs
 *
 * The caller and up to threads - 1 helpers copy a batch together. The work lies in chunks,
 * and whoever has time claims the next one: a fast CPU copies more, and a helper that never
 * gets a CPU copies none and is not missed.
 *
 * Life cycle of a job: the caller takes an idle job, sends its works to helper CPUs, and
 * copies until no chunk is left to claim. Then it waits for chunks that are being copied,
 * takes back the works that did not start, and returns. Works that did start may outlast the
 * batch; they hold a reference to the job, not to the batch, and find no chunk to claim. The
 * job is idle again when the last reference is dropped.
 *
 * Why the wait is short: a helper claims and copies with preemption off, so a claimed chunk
 * is always being copied by a running CPU, and the caller waits for one chunk at most. It
 * never waits for a helper to be scheduled.
 *
 * Why no helper touches a batch that was returned: claiming is a fully ordered atomic
 * operation on job->next, and a helper raises job->copying before it claims. When the caller
 * has seen the last chunk claimed, a later claim gets none, and an earlier one shows in
 * job->copying until its copy is complete.
 *
 * No memory is allocated: jobs exist from module load on. When all are busy the caller
 * copies alone.
 *
 * Lock order: none of ours on the copy path; queue_work_on() takes the worker pool's lock.
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

#include "mtcopy.h"

/*
 * Waking a helper takes a few microseconds, in which one CPU copies some tens of KiB.
 * A helper is sent for when its share is several times that.
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
 * struct mtcopy_job - a batch being copied by several CPUs
 * @batch:	the batch; only for who has claimed a chunk
 * @nr_chunks:	its chunks
 * @streaming:	store past the cache
 * @next:	next chunk to claim; at or above @nr_chunks none is left
 * @copying:	helpers that may have claimed a chunk and not finished it
 * @refs:	the caller, and each queued or running work; 0 is an idle job
 * @helpers:	works
 */
struct mtcopy_job {
	struct ferry_batch *batch;
	unsigned int nr_chunks;
	bool streaming;
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
	unsigned int i;

	for (i = 0; i < mtcopy_nr_jobs; i++) {
		struct mtcopy_job *job =
			&mtcopy_jobs[(raw_smp_processor_id() + i) % mtcopy_nr_jobs];

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

/* Claim and copy one chunk. Return false when none was left. */
static bool mtcopy_claim(struct mtcopy_job *job, unsigned int *cursor)
{
	unsigned int chunk = atomic_fetch_inc(&job->next);

	if (chunk >= job->nr_chunks)
		return false;
	mtcopy_chunk(job->batch, chunk, cursor, job->streaming);
	return true;
}

static bool mtcopy_help(struct mtcopy_job *job, unsigned int *cursor)
{
	bool more;

	/* What is claimed must be copied without a break: the caller spins on it. */
	guard(preempt)();
	atomic_inc(&job->copying);
	/* The claim, fully ordered, comes after: see the DOC block. */
	smp_mb__after_atomic();
	more = mtcopy_claim(job, cursor);
	/* Pairs with the acquire in mtcopy_wait(). */
	atomic_dec_return_release(&job->copying);
	return more;
}

static void mtcopy_work(struct work_struct *work)
{
	struct mtcopy_helper *helper = container_of(work, struct mtcopy_helper, work);
	struct mtcopy_job *job = helper->job;
	unsigned int cursor = 0;

	while (mtcopy_help(job, &cursor))
		cond_resched();
	mtcopy_job_put(job);
}

/* Send for helpers. Return how many works were queued. */
static unsigned int mtcopy_call(struct mtcopy_job *job, unsigned int wanted)
{
	bool place = READ_ONCE(mtcopy_tuning.spread) != FERRY_SPREAD_NONE;
	unsigned int cpus[MTCOPY_MAX_HELPERS];
	unsigned int i, nr;

	nr = mtcopy_pick_helpers(job->batch->dst_nid, cpus, wanted, job->batch->bytes);
	atomic_add(nr, &job->refs);
	for (i = 0; i < nr; i++)
		queue_work_on(place ? cpus[i] : WORK_CPU_UNBOUND, mtcopy_wq,
			      &job->helpers[i].work);
	return nr;
}

/* Wait until no helper is inside the batch. No more can enter: all chunks are claimed. */
static void mtcopy_wait(struct mtcopy_job *job)
{
	while (atomic_read_acquire(&job->copying)) {
		cpu_relax();
		cond_resched();
	}
}

static void mtcopy_dismiss(struct mtcopy_job *job, unsigned int nr)
{
	while (nr--)
		if (cancel_work(&job->helpers[nr].work))
			mtcopy_job_put(job);
}

static void mtcopy_copy_together(struct mtcopy_job *job, unsigned int wanted)
{
	unsigned int nr, cursor = 0;

	atomic_set(&job->next, 0);
	nr = mtcopy_call(job, wanted);
	job->batch->solo = !nr;
	while (mtcopy_claim(job, &cursor))
		cond_resched();
	mtcopy_wait(job);
	mtcopy_dismiss(job, nr);
	mtcopy_job_put(job);
}

static void mtcopy_copy_alone(struct ferry_batch *batch, bool streaming)
{
	unsigned int chunk, cursor = 0, nr = mtcopy_nr_chunks(batch);

	for (chunk = 0; chunk < nr; chunk++) {
		mtcopy_chunk(batch, chunk, &cursor, streaming);
		cond_resched();
	}
}

/**
 * mtcopy_copy() - copy a batch by this CPU and what idle CPUs there are
 * @batch: the batch
 *
 * Context: process context, all folios locked. Does not allocate.
 * Return: 0.
 */
int mtcopy_copy(struct ferry_batch *batch)
{
	unsigned int helpers = min_t(size_t, READ_ONCE(mtcopy_tuning.threads) - 1,
				     batch->bytes / MTCOPY_HELPER_BYTES);
	bool streaming = mtcopy_streams(batch);
	struct mtcopy_job *job = helpers ? mtcopy_job_get() : NULL;
	unsigned int i;

	/* Complete unless a chunk fails. */
	for (i = 0; i < batch->nr; i++)
		batch->pairs[i].status = 0;
	if (!job) {
		batch->solo = true;
		mtcopy_copy_alone(batch, streaming);
		return 0;
	}
	job->batch = batch;
	job->nr_chunks = mtcopy_nr_chunks(batch);
	job->streaming = streaming;
	mtcopy_copy_together(job, helpers);
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
	/* WORK_CPU_UNBOUND works go to the pool of a CPU's last-level cache. */
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
	/* Runs the works that outlasted their batch. */
	destroy_workqueue(mtcopy_wq);
	mtcopy_helpers_exit();
	kvfree(mtcopy_jobs);
}
module_exit(mtcopy_exit);

MODULE_DESCRIPTION("Folio copy by many CPUs for page migration");
MODULE_LICENSE("GPL");
