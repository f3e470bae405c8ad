// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Copying a batch by claimed channels
 *
 * Life cycle of a job:
 *
 * 1. The caller claims its channels, see dcbm_claim().
 * 2. In rounds, mostly one: dcbm_split() gives each channel a transfer, each is
 *    mapped, the descriptors are submitted, and the pairs get their status.
 * 3. The channels are given back, except those that hang, which hung.c keeps.
 *
 * No round begins after the deadline of DCBM_BATCH_TIMEOUTS. No memory is
 * allocated: each channel has all that it needs since it is held, and the job
 * lies on the caller's stack.
 */

#include <linux/bitmap.h>
#include <linux/jiffies.h>

#include "internal.h"

/** dcbm_keep_nearest() - give back a job's channels but the @nr nearest */
void dcbm_keep_nearest(struct dcbm_job *job, unsigned int nr)
{
	while (job->nr > nr)
		dcbm_unclaim(job->ch[--job->nr]);
}

static void dcbm_map_job(struct dcbm_job *job)
{
	unsigned int i, k;

	for (i = 0; i < job->nr; i++) {
		struct dcbm_transfer *transfer = &job->ch[i]->transfer;

		if (!transfer->nr_segments || !dcbm_map(transfer, job->ch[i]))
			continue;
		dcbm_count(DCBM_MAP_FAILURES, 1);
		for (k = 0; k < transfer->nr_segments; k++)
			job->batch->pairs[transfer->pair[k]].status = -EIO;
	}
}

/* Copy one transfer for each channel. Hung channels leave the job. */
static void dcbm_copy_round(struct dcbm_job *job)
{
	DECLARE_BITMAP(hung, DCBM_MAX_CHANNELS) = {};
	unsigned int i, nr = 0;

	dcbm_map_job(job);
	dcbm_submit_and_wait(job);
	for (i = 0; i < job->nr; i++)
		if (dcbm_complete_channel(job, job->ch[i]))
			set_bit(i, hung);
	for (i = 0; i < job->nr; i++)
		if (!test_bit(i, hung))
			job->ch[nr++] = job->ch[i];
	job->nr = nr;
}

/**
 * dcbm_copy_job() - copy a job's batch by its channels, and give them back
 * @job: the job, with at least one channel
 *
 * Context: process context; all folios are locked or unreachable for others.
 * May sleep for as long as dcbm_submit_and_wait() says.
 */
void dcbm_copy_job(struct dcbm_job *job)
{
	struct ferry_batch *batch = job->batch;
	unsigned int i;

	/* Complete unless a descriptor fails. */
	for (i = 0; i < batch->nr; i++)
		batch->pairs[i].status = 0;
	job->start = jiffies;
	while (!dcbm_deadline_passed(job) && dcbm_split(job))
		dcbm_copy_round(job);
	/* The rest, if all channels hang or the deadline has passed. */
	for (i = job->pair; i < batch->nr; i++)
		batch->pairs[i].status = -EAGAIN;
	dcbm_keep_nearest(job, 0);
}
