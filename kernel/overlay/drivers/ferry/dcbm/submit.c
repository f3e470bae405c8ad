// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Submission of descriptors
 *
 * The descriptors of a transfer are submitted in groups: as many as the driver
 * accepts at once, issued once or each, as its quirks say. When a group is
 * complete, the next one follows. A channel whose driver has room for it has
 * two transfers, and so two groups at a time.
 *
 * Only the last descriptor of a group asks for an interrupt, unless the driver
 * needs one for each. A driver that completes in order calls all callbacks of
 * the group then.
 *
 * Callbacks may come from hard interrupts, in any order, late, or never. They
 * only touch their descriptor and the @pending of their transfer. The decrement
 * is their last access to the channel, and releases their earlier stores to the
 * CPU that reads 0 there. Then they count the group as complete and wake the
 * task that copies the batch, by a counter and a wait queue that outlive the
 * channel. The increment releases the decrement: a task that sees the count
 * looks at the channels once, and must find the 0 then.
 *
 * Locking: dcbm takes no lock here. Between prep() and submit() it calls
 * nothing else, because some drivers hold a lock of their own there.
 */

#include <linux/delay.h>
#include <linux/error-injection.h>
#include <linux/ktime.h>
#include <linux/wait.h>

#include "internal.h"

/* One descriptor less to wait for. The last access to the channel. */
static void dcbm_desc_done(struct dcbm_transfer *transfer)
{
	struct dcbm_done *done = transfer->ch->done;

	/* Pairs with the acquire in dcbm_poll_transfer() and that in hung.c. */
	if (atomic_dec_return_release(&transfer->pending))
		return;
	/* Pairs with the acquire in dcbm_nr_done(). */
	(void)atomic_inc_return_release(&done->nr);
	wake_up(&done->wait);
}

static void dcbm_callback(void *param, const struct dmaengine_result *result)
{
	struct dcbm_desc *desc = param;
	struct dcbm_transfer *transfer = desc->transfer;
	bool failed = result && result->result != DMA_TRANS_NOERROR;

	/*
	 * The driver dropped the descriptor but the device may not have
	 * finished it: treat that like a missing callback.
	 */
	if (failed && result->result == DMA_TRANS_ABORTED &&
	    !transfer->ch->quirks->aborted_means_idle)
		return;
	/* A second callback must not decrement pending again. */
	if (cmpxchg(&desc->status, -EINPROGRESS, failed ? -EIO : 0) !=
	    -EINPROGRESS)
		return;
	dcbm_desc_done(transfer);
}

static noinline struct dma_async_tx_descriptor *
dcbm_prep(struct dcbm_channel *ch, struct dcbm_desc *desc, unsigned long flags)
{
	return dmaengine_prep_dma_memcpy(ch->chan, desc->dst, desc->src,
					 desc->len, flags);
}
ALLOW_ERROR_INJECTION(dcbm_prep, NULL);

/* Submit one descriptor. Return false if the driver's queue is full. */
static bool dcbm_submit(struct dcbm_channel *ch, struct dcbm_desc *desc,
			bool last)
{
	unsigned long flags = DMA_CTRL_ACK;
	struct dma_async_tx_descriptor *tx;

	if (last || ch->quirks->issue_each)
		flags |= DMA_PREP_INTERRUPT;
	tx = dcbm_prep(ch, desc, flags);
	if (!tx)
		return false;
	tx->callback_result = dcbm_callback;
	tx->callback_param = desc;
	WRITE_ONCE(desc->status, -EINPROGRESS);
	atomic_inc(&desc->transfer->pending);
	/*
	 * A driver may call back before it returns the error (idxd does): count
	 * it once.
	 */
	if (dma_submit_error(dmaengine_submit(tx)) &&
	    cmpxchg(&desc->status, -EINPROGRESS, -EIO) == -EINPROGRESS)
		dcbm_desc_done(desc->transfer);
	if (ch->quirks->issue_each)
		dma_async_issue_pending(ch->chan);
	return true;
}

/* Submit the next descriptor of the transfer. */
static bool dcbm_submit_next(struct dcbm_transfer *transfer, bool last)
{
	struct dcbm_desc *desc = &transfer->descs[transfer->next];
	struct dcbm_channel *ch = transfer->ch;

	if (!dcbm_submit(ch, desc, last)) {
		ch->refused = true;
		return false;
	}
	transfer->next++;
	transfer->group_bytes += desc->len;
	ch->nr_descs++;
	ch->bytes += desc->len;
	if (folio_nid(dcbm_dst_folio(transfer, desc->first)) == ch->nid)
		ch->near_bytes += desc->len;
	dcbm_count(DCBM_DESCRIPTORS, 1);
	return true;
}

/*
 * Issue a group. Its device has the time from now on. The groups of a transfer
 * that is late have less, but a quarter of it at least.
 */
static void dcbm_issue(struct dcbm_transfer *transfer, u64 limit_ns)
{
	u64 now;

	if (!transfer->ch->quirks->issue_each)
		dma_async_issue_pending(transfer->ch->chan);
	now = ktime_get_ns();
	transfer->overdue = min(now + limit_ns,
				max(now, transfer->deadline) + limit_ns / 4);
	transfer->late = false;
}

/*
 * The driver's queue became full within a group, none of whose descriptors asks
 * for an interrupt. Let the queue drain until it accepts one that does. A task
 * that gets no CPU in that time asks once more after it. Return false if the
 * queue is full even then.
 */
static bool dcbm_submit_last(struct dcbm_transfer *transfer)
{
	bool late;

	do {
		usleep_range(20, 50);
		late = ktime_get_ns() > transfer->overdue;
		if (dcbm_submit_next(transfer, true))
			return true;
	} while (!late);
	return false;
}

/**
 * dcbm_submit_group() - submit the next group of a transfer
 * @transfer:	the transfer, with descriptors left and none in flight
 * @limit_ns:	time that the device may take for the group
 *
 * Context: process context. May sleep for @limit_ns.
 * Return: false if the driver accepted no descriptor.
 */
bool dcbm_submit_group(struct dcbm_transfer *transfer, u64 limit_ns)
{
	struct dcbm_channel *ch = transfer->ch;
	unsigned int room = ch->quirks->depth / ch->nr_transfers;
	unsigned int first = transfer->next;
	unsigned int end = min(first + room, transfer->nr_descs);

	while (transfer->next < end &&
	       dcbm_submit_next(transfer, transfer->next == end - 1))
		;
	if (transfer->next == first)
		return false;
	dcbm_issue(transfer, limit_ns);
	if (transfer->next < end && !ch->quirks->issue_each &&
	    dcbm_submit_last(transfer))
		dcbm_issue(transfer, limit_ns);
	return true;
}
