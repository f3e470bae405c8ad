// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Submission of descriptors
 *
 * The task that copies a batch submits each channel's descriptors in groups: as
 * many as the driver accepts at once, issued once or each, as its quirks say.
 * When a group has completed the next one follows. In between the task sleeps;
 * callbacks wake it.
 *
 * With DCBM_TRUST_SENTINEL each group ends in a private descriptor and is
 * complete when that is. The driver must have finished its work after the
 * callbacks before the next group, because it might otherwise split that group
 * into two chains.
 *
 * If prep() returns NULL the driver's queue is full: the task sleeps briefly
 * and retries. A channel that has neither accepted nor completed a descriptor
 * for timeout_ms has failed: the CPU copies the descriptors not submitted, and
 * dcbm_complete_channel() decides about the rest. dcbm_back_off() keeps later
 * batches off a channel that accepts none for a while.
 *
 * A channel that is slow but alive would otherwise hold the folios of the batch
 * without a limit: DCBM_BATCH_TIMEOUTS after the batch began it gets no more
 * descriptors and backs off too. Descriptors in flight time out one timeout
 * later.
 *
 * Callbacks may come from hard interrupts, in any order, late, or never. They
 * only touch their descriptor and their channel's @pending and @progress. The
 * decrement of @pending is their last access, and releases their earlier
 * stores to the CPU that reads 0 there.
 *
 * Locking: dcbm takes no lock here. Between prep() and submit() it calls
 * nothing else, because some drivers hold a lock of their own there.
 */

#include <linux/delay.h>
#include <linux/error-injection.h>
#include <linux/jiffies.h>
#include <linux/wait.h>

#include "internal.h"

/* Time without new batches for a channel that accepted no descriptor. */
#define DCBM_BACKOFF	(10 * HZ)

static void dcbm_callback(void *param, const struct dmaengine_result *result)
{
	struct dcbm_desc *desc = param;
	struct dcbm_channel *ch = desc->ch;
	bool failed = result && result->result != DMA_TRANS_NOERROR;

	/*
	 * The driver dropped the descriptor but the device may not have
	 * finished it: treat that like a missing callback.
	 */
	if (failed && result->result == DMA_TRANS_ABORTED)
		return;
	/* A second callback must not decrement pending again. */
	if (cmpxchg(&desc->status, -EINPROGRESS, failed ? -EIO : 0) !=
	    -EINPROGRESS)
		return;
	WRITE_ONCE(ch->progress, jiffies);
	/*
	 * Pairs with the acquire in dcbm_poll_channel() and those in hung.c.
	 * The last access to @ch.
	 */
	atomic_dec_return_release(&ch->pending);
	wake_up_all(&dcbm_wait);
}

static noinline struct dma_async_tx_descriptor *
dcbm_prep(struct dcbm_channel *ch, struct dcbm_desc *desc)
{
	return dmaengine_prep_dma_memcpy(ch->chan, desc->dst, desc->src,
					 desc->len,
					 DMA_CTRL_ACK | DMA_PREP_INTERRUPT);
}
ALLOW_ERROR_INJECTION(dcbm_prep, NULL);

/* Submit one descriptor. Return false if the driver's queue is full. */
static bool dcbm_submit(struct dcbm_channel *ch, struct dcbm_desc *desc)
{
	struct dma_async_tx_descriptor *tx = dcbm_prep(ch, desc);

	if (!tx)
		return false;
	tx->callback_result = dcbm_callback;
	tx->callback_param = desc;
	WRITE_ONCE(desc->status, -EINPROGRESS);
	atomic_inc(&ch->pending);
	/*
	 * A driver may call back before it returns the error (idxd does): count
	 * it once.
	 */
	if (dma_submit_error(dmaengine_submit(tx)) &&
	    cmpxchg(&desc->status, -EINPROGRESS, -EIO) == -EINPROGRESS)
		atomic_dec(&ch->pending);
	if (ch->quirks->issue_each)
		dma_async_issue_pending(ch->chan);
	return true;
}

/* Submit the next descriptor of the transfer. */
static bool dcbm_submit_next(struct dcbm_channel *ch)
{
	struct dcbm_desc *desc = &ch->transfer.descs[ch->next];

	if (!dcbm_submit(ch, desc))
		return false;
	ch->next++;
	ch->nr_descs++;
	ch->bytes += desc->len;
	if (folio_nid(dcbm_dst_folio(&ch->transfer, desc->first)) == ch->nid)
		ch->near_bytes += desc->len;
	dcbm_count(DCBM_DESCRIPTORS, 1);
	return true;
}

/* One jiffy more, because the current one may be about to end. */
static unsigned long dcbm_timeout_jiffies(void)
{
	return msecs_to_jiffies(READ_ONCE(dcbm_tuning.timeout_ms)) + 1;
}

/*
 * End a group by its sentinel. The group left room for it, but the driver may
 * be slow to see that.
 */
static bool dcbm_submit_sentinel(struct dcbm_channel *ch)
{
	unsigned long end = jiffies + dcbm_timeout_jiffies();

	while (!dcbm_submit(ch, &ch->last)) {
		if (time_after(jiffies, end))
			return false;
		usleep_range(20, 50);
	}
	return true;
}

/* Submit a group. Return false if the driver accepted no descriptor. */
static bool dcbm_submit_group(struct dcbm_channel *ch)
{
	bool sentinel = ch->quirks->trust == DCBM_TRUST_SENTINEL;
	unsigned int room = ch->quirks->depth - sentinel;

	/*
	 * A driver still at work after the last callback may see the channel
	 * idle and start the descriptors submitted so far: two chains, and the
	 * sentinel covers the second only. So wait for the driver. Nothing is
	 * in flight, so the wait loses no completion.
	 */
	if (sentinel)
		dmaengine_synchronize(ch->chan);
	ch->first = ch->next;
	while (ch->next < ch->end && ch->next - ch->first < room &&
	       dcbm_submit_next(ch))
		;
	if (ch->next == ch->first)
		return false;
	/* Without its sentinel the group is never issued, and times out. */
	if (sentinel && !dcbm_submit_sentinel(ch))
		return true;
	if (!ch->quirks->issue_each)
		dma_async_issue_pending(ch->chan);
	return true;
}

static bool dcbm_timed_out(const struct dcbm_channel *ch)
{
	return time_after(jiffies,
			  READ_ONCE(ch->progress) + dcbm_timeout_jiffies());
}

static bool dcbm_elapsed(const struct dcbm_job *job, unsigned int timeouts)
{
	return time_after(jiffies,
			  job->start + timeouts * dcbm_timeout_jiffies());
}

/**
 * dcbm_deadline_passed() - must a job submit nothing more?
 * @job: the job, started
 *
 * Context: any.
 * Return: true if DCBM_BATCH_TIMEOUTS have passed since it started.
 */
bool dcbm_deadline_passed(const struct dcbm_job *job)
{
	return dcbm_elapsed(job, DCBM_BATCH_TIMEOUTS);
}

/* The rest of the transfer stays -EAGAIN for dcbm_complete_channel(). */
static void dcbm_back_off(struct dcbm_channel *ch, enum dcbm_counter reason)
{
	dcbm_count(reason, 1);
	ch->backoff_until = jiffies + DCBM_BACKOFF;
	ch->end = ch->next;
}

/* Bits: the state of a job is that of all its channels. */
enum dcbm_state {
	DCBM_IDLE = 0,
	DCBM_QUEUE_FULL = BIT(0),
	DCBM_WAITING = BIT(1),
};

/* If its sentinel failed, no descriptor of the group is complete. */
static void dcbm_group_done(struct dcbm_channel *ch)
{
	unsigned int i;

	ch->waiting = false;
	if (ch->quirks->trust != DCBM_TRUST_SENTINEL || !ch->last.status)
		return;
	for (i = ch->first; i < ch->next; i++)
		ch->transfer.descs[i].status = -EIO;
}

/* Check a channel for completion or timeout, and submit its next group. */
static enum dcbm_state dcbm_poll_channel(const struct dcbm_job *job,
					 struct dcbm_channel *ch)
{
	if (ch->next < ch->end && dcbm_deadline_passed(job))
		dcbm_back_off(ch, DCBM_DEADLINE_EXCEEDED);
	/* Pairs with the release in dcbm_callback(). */
	if (ch->waiting && atomic_read_acquire(&ch->pending)) {
		ch->timed_out = dcbm_timed_out(ch) ||
				dcbm_elapsed(job, DCBM_BATCH_TIMEOUTS + 1);
		return ch->timed_out ? DCBM_IDLE : DCBM_WAITING;
	}
	if (ch->waiting)
		dcbm_group_done(ch);
	if (ch->next == ch->end)
		return DCBM_IDLE;
	if (!dcbm_submit_group(ch)) {
		if (!dcbm_timed_out(ch))
			return DCBM_QUEUE_FULL;
		dcbm_back_off(ch, DCBM_PREP_FAILURES);
		return DCBM_IDLE;
	}
	WRITE_ONCE(ch->progress, jiffies);
	ch->waiting = true;
	return DCBM_WAITING;
}

static enum dcbm_state dcbm_poll_all(struct dcbm_job *job)
{
	enum dcbm_state state = DCBM_IDLE;
	unsigned int i;

	for (i = 0; i < job->nr; i++)
		if (!job->ch[i]->timed_out)
			state |= dcbm_poll_channel(job, job->ch[i]);
	return state;
}

/* Has any channel completed its group? */
static bool dcbm_any_done(const struct dcbm_job *job)
{
	unsigned int i;

	for (i = 0; i < job->nr; i++)
		if (job->ch[i]->waiting && !job->ch[i]->timed_out &&
		    !atomic_read(&job->ch[i]->pending))
			return true;
	return false;
}

/**
 * dcbm_submit_and_wait() - let the channels of a job copy their transfers
 * @job: the job; its transfers are mapped
 *
 * On return each descriptor of each channel has a final status, except those in
 * flight on a channel that has timed out.
 *
 * Context: process context. Sleeps for up to timeout_ms after the last progress
 * of each channel, and as long again for each sentinel that a driver does not
 * accept; in total until DCBM_BATCH_TIMEOUTS + 1 timeouts after the job
 * started, because the last wait for a sentinel begins one timeout before that.
 */
void dcbm_submit_and_wait(struct dcbm_job *job)
{
	enum dcbm_state state;
	unsigned int i;

	for (i = 0; i < job->nr; i++) {
		struct dcbm_channel *ch = job->ch[i];

		ch->first = 0;
		ch->next = 0;
		ch->end = ch->transfer.nr_descs;
		ch->waiting = false;
		ch->timed_out = false;
		WRITE_ONCE(ch->progress, jiffies);
	}
	while ((state = dcbm_poll_all(job)) != DCBM_IDLE) {
		/* Each poll checks the timeouts; a callback may never come. */
		if (state & DCBM_QUEUE_FULL)
			usleep_range(20, 50);
		else
			wait_event_timeout(dcbm_wait, dcbm_any_done(job),
					   msecs_to_jiffies(10) + 1);
	}
}
