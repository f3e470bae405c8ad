// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Driving the channels of a run
 *
 * The caller feeds every channel of its run with groups of descriptors: as many as the driver
 * takes at once, issued once or each, as its row says. When a group has completed the next
 * follows. Between that it sleeps; callbacks wake it.
 *
 * Where the proof is a sentinel, each group ends in a private descriptor, and is complete when
 * that is. The driver must have ended what it does after the callbacks before the next group,
 * or it might cut that in two.
 *
 * prep() returning NULL is back-pressure: the caller naps and asks again. A channel that has
 * neither taken nor completed a descriptor for timeout_ms is given up: what was not submitted
 * is left to the CPU, what was is up to dcbm_settle(). One that takes none then rests.
 *
 * A channel that is slow but alive would hold the folios of the batch for as long as it likes:
 * DCBM_BATCH_TIMEOUTS after the batch began it is given no more and rests, too. What is in
 * flight is given up one timeout later.
 *
 * Callbacks may come from hard interrupts, in any order, late, or never. They touch their
 * descriptor and their channel's @pending and @progress only; lowering @pending is the last
 * thing they do, and releases what they wrote to whoever reads 0 there.
 *
 * Lock order: none are taken. Nothing is held between prep() and submit(), where some drivers
 * hold a lock of their own.
 */

#include <linux/delay.h>
#include <linux/error-injection.h>
#include <linux/jiffies.h>
#include <linux/wait.h>

#include "internal.h"

/* A driver that took nothing for so long is not asked again at once. */
#define DCBM_REST	(10 * HZ)

/* Woken by callbacks, and by whoever gives a channel back. */
DECLARE_WAIT_QUEUE_HEAD(dcbm_wait);

static void dcbm_done(void *param, const struct dmaengine_result *result)
{
	struct dcbm_desc *desc = param;
	struct dcbm_channel *ch = desc->ch;
	bool failed = result && result->result != DMA_TRANS_NOERROR;

	/* Given up by the driver, not finished by the device: as good as no callback. */
	if (failed && result->result == DMA_TRANS_ABORTED)
		return;
	/* A second callback while the descriptor is in use must not lower pending again. */
	if (cmpxchg(&desc->status, -EINPROGRESS, failed ? -EIO : 0) != -EINPROGRESS)
		return;
	WRITE_ONCE(ch->progress, jiffies);
	/* Pairs with the acquire in dcbm_step() and the quarantine's. The last access to @ch. */
	atomic_dec_return_release(&ch->pending);
	wake_up_all(&dcbm_wait);
}

static noinline struct dma_async_tx_descriptor *
dcbm_prep(struct dcbm_channel *ch, struct dcbm_desc *desc)
{
	return dmaengine_prep_dma_memcpy(ch->chan, desc->dst, desc->src, desc->len,
					 DMA_CTRL_ACK | DMA_PREP_INTERRUPT);
}
ALLOW_ERROR_INJECTION(dcbm_prep, NULL);

/* Hand one descriptor to the driver. Return false if it takes none now. */
static bool dcbm_submit(struct dcbm_channel *ch, struct dcbm_desc *desc)
{
	struct dma_async_tx_descriptor *tx = dcbm_prep(ch, desc);

	if (!tx)
		return false;
	tx->callback_result = dcbm_done;
	tx->callback_param = desc;
	WRITE_ONCE(desc->status, -EINPROGRESS);
	atomic_inc(&ch->pending);
	/* A driver may call back before it returns the error (idxd does): count it once. */
	if (dma_submit_error(dmaengine_submit(tx)) &&
	    cmpxchg(&desc->status, -EINPROGRESS, -EIO) == -EINPROGRESS)
		atomic_dec(&ch->pending);
	if (ch->engine->issue_each)
		dma_async_issue_pending(ch->chan);
	return true;
}

/* Submit the next descriptor of the share. */
static bool dcbm_submit_next(struct dcbm_channel *ch)
{
	struct dcbm_desc *desc = &ch->share.descs[ch->next];

	if (!dcbm_submit(ch, desc))
		return false;
	ch->next++;
	ch->nr_descs++;
	ch->bytes += desc->len;
	if (folio_nid(dcbm_piece_dst(&ch->share, desc->first)) == ch->nid)
		ch->near_bytes += desc->len;
	dcbm_count(DCBM_DESCRIPTORS, 1);
	return true;
}

/* The timeout. One more, as the current jiffy may be about to end. */
static unsigned long dcbm_patience(void)
{
	return msecs_to_jiffies(READ_ONCE(dcbm_tuning.timeout_ms)) + 1;
}

/* End a group by its sentinel. Its slot was left free, but the driver may be slow to see that. */
static bool dcbm_submit_sentinel(struct dcbm_channel *ch)
{
	unsigned long end = jiffies + dcbm_patience();

	while (!dcbm_submit(ch, &ch->last)) {
		if (time_after(jiffies, end))
			return false;
		usleep_range(20, 50);
	}
	return true;
}

/* Submit as many descriptors as may be in flight. Return false if the driver took none. */
static bool dcbm_submit_group(struct dcbm_channel *ch)
{
	bool sentinel = ch->engine->proof == DCBM_PROOF_SENTINEL;
	unsigned int room = ch->engine->depth - sentinel;

	/*
	 * A driver still at work after the last callback may see the channel idle and start what
	 * is submitted so far: two chains, and the sentinel vouches for the second only. So wait
	 * for it to end. Nothing is in flight, so no completion gets lost by that.
	 */
	if (sentinel)
		dmaengine_synchronize(ch->chan);
	ch->first = ch->next;
	while (ch->next < ch->end && ch->next - ch->first < room && dcbm_submit_next(ch))
		;
	if (ch->next == ch->first)
		return false;
	/* Without its sentinel the group is never issued, and times out. */
	if (sentinel && !dcbm_submit_sentinel(ch))
		return true;
	if (!ch->engine->issue_each)
		dma_async_issue_pending(ch->chan);
	return true;
}

static bool dcbm_timed_out(const struct dcbm_channel *ch)
{
	return time_after(jiffies, READ_ONCE(ch->progress) + dcbm_patience());
}

static bool dcbm_taken(const struct dcbm_run *run, unsigned int timeouts)
{
	return time_after(jiffies, run->start + timeouts * dcbm_patience());
}

/**
 * dcbm_overdue() - has a run taken so long that nothing more may be begun?
 * @run: the run, begun
 *
 * Context: any.
 * Return: true if so.
 */
bool dcbm_overdue(const struct dcbm_run *run)
{
	return dcbm_taken(run, DCBM_BATCH_TIMEOUTS);
}

/* dcbm_settle() finds the rest of the share not submitted. */
static void dcbm_rest(struct dcbm_channel *ch, enum dcbm_counter why)
{
	dcbm_count(why, 1);
	ch->rest_until = jiffies + DCBM_REST;
	ch->end = ch->next;
}

/* Bits: the state of a run is that of all its channels. */
enum dcbm_state {
	DCBM_IDLE = 0,
	DCBM_STARVED = BIT(0),
	DCBM_WAITING = BIT(1),
};

/* A group whose sentinel has failed is not complete, whatever the others say. */
static void dcbm_group_done(struct dcbm_channel *ch)
{
	unsigned int i;

	ch->waiting = false;
	if (ch->engine->proof != DCBM_PROOF_SENTINEL || !ch->last.status)
		return;
	for (i = ch->first; i < ch->next; i++)
		ch->share.descs[i].status = -EIO;
}

/* Take a channel one step further, if it can be. */
static enum dcbm_state dcbm_step(const struct dcbm_run *run, struct dcbm_channel *ch)
{
	if (ch->next < ch->end && dcbm_overdue(run))
		dcbm_rest(ch, DCBM_DEADLINE_EXCEEDED);
	/* Pairs with the release in dcbm_done(). */
	if (ch->waiting && atomic_read_acquire(&ch->pending)) {
		ch->stuck = dcbm_timed_out(ch) || dcbm_taken(run, DCBM_BATCH_TIMEOUTS + 1);
		return ch->stuck ? DCBM_IDLE : DCBM_WAITING;
	}
	if (ch->waiting)
		dcbm_group_done(ch);
	if (ch->next == ch->end)
		return DCBM_IDLE;
	if (!dcbm_submit_group(ch)) {
		if (!dcbm_timed_out(ch))
			return DCBM_STARVED;
		dcbm_rest(ch, DCBM_PREP_FAILURES);
		return DCBM_IDLE;
	}
	WRITE_ONCE(ch->progress, jiffies);
	ch->waiting = true;
	return DCBM_WAITING;
}

/* Has any channel completed its group? */
static bool dcbm_ready(const struct dcbm_run *run)
{
	unsigned int i;

	for (i = 0; i < run->nr; i++)
		if (run->ch[i]->waiting && !run->ch[i]->stuck &&
		    !atomic_read(&run->ch[i]->pending))
			return true;
	return false;
}

static enum dcbm_state dcbm_step_all(struct dcbm_run *run)
{
	enum dcbm_state state = DCBM_IDLE;
	unsigned int i;

	for (i = 0; i < run->nr; i++)
		if (!run->ch[i]->stuck)
			state |= dcbm_step(run, run->ch[i]);
	return state;
}

static void dcbm_start(struct dcbm_channel *ch)
{
	ch->first = 0;
	ch->next = 0;
	ch->end = ch->share.nr_descs;
	ch->waiting = false;
	ch->stuck = false;
	WRITE_ONCE(ch->progress, jiffies);
}

/**
 * dcbm_drive() - let the channels of a run copy their shares
 * @run: the run; its shares are mapped
 *
 * On return each descriptor of each channel has a final status, except those in flight on a
 * channel that is stuck.
 *
 * Context: process context. Sleeps, for timeout_ms after the last sign of life of each channel,
 * and as long again for each sentinel that a driver does not take; all in all until
 * DCBM_BATCH_TIMEOUTS + 1 timeouts after the run began, as the last wait for a sentinel begins one
 * timeout before that.
 */
void dcbm_drive(struct dcbm_run *run)
{
	enum dcbm_state state;
	unsigned int i;

	for (i = 0; i < run->nr; i++)
		dcbm_start(run->ch[i]);
	while ((state = dcbm_step_all(run)) != DCBM_IDLE) {
		/* The timeout is checked by each step; a wake-up may be missing altogether. */
		if (state & DCBM_STARVED)
			usleep_range(20, 50);
		else
			wait_event_timeout(dcbm_wait, dcbm_ready(run), msecs_to_jiffies(10) + 1);
	}
}
