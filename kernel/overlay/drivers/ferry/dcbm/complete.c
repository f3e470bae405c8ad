// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Completion and verification
 *
 * A folio may be moved to its destination when every descriptor of it has
 * completed and the driver's completions can be trusted. If the driver reports
 * errors, its word is enough; otherwise the CPU verifies the copy: it compares
 * both sides after they were unmapped. A folio with a failed descriptor is left
 * to the CPU, which copies it in the move phase; its neighbours are not
 * affected.
 *
 * Both sides may have been equal before, as pages of zeros are, and a driver
 * that completes too early would pass. So dcbm_spoil() makes the last word of
 * each destination differ from its source before the transfer begins. A device
 * that writes the end of a segment first could still pass.
 *
 * The CPU may hit poison when it reads a source. It reads the source by the
 * copy that survives a machine check, where the architecture has one, into a
 * buffer on the stack and compares that. A source that cannot be read counts as
 * different, because nothing proves the copy, and is left to the move phase,
 * which reports it.
 *
 * The segments that the device of a hung channel may still write are marked in
 * flight, for hung.c. Nothing that shares a mapping with them is unmapped, so
 * their completed neighbours, which cannot be verified while they are mapped,
 * are left to the CPU. If only verification could have told that the device has
 * finished with them, they are marked, too.
 *
 * A completion that verification refutes may have come early, and nothing will
 * tell when the device does stop. Then the channel hangs until its driver is
 * unbound, with the segments of the descriptor. A driver with done_means_idle
 * only completes what its device has ended: there it was an error.
 */

#include <linux/bitmap.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "internal.h"

/* Bytes of a source that are read at a time, on the stack. */
#define DCBM_VERIFY_STEP	256

static bool dcbm_same_bytes(const void *dst, const void *src, size_t len)
{
	char copy[DCBM_VERIFY_STEP];
	size_t step;

	if (!IS_ENABLED(CONFIG_ARCH_HAS_COPY_MC))
		return !memcmp(dst, src, len);
	for (; len; len -= step, dst += step, src += step) {
		step = min(len, sizeof(copy));
		if (copy_mc_to_kernel(copy, src, step) ||
		    memcmp(dst, copy, step))
			return false;
	}
	return true;
}

/*
 * Compare a descriptor's source and destination, which are unmapped and locked,
 * and which no other task can reach. Return true if all sources could be read
 * and no difference was found.
 */
static bool dcbm_desc_matches(struct dcbm_transfer *transfer,
			      const struct dcbm_desc *desc)
{
	u64 start = ktime_get_ns();
	bool same = true;
	unsigned int i;

	for (i = desc->first; same && i < desc->first + desc->nr; i++) {
		same = dcbm_same_bytes(sg_virt(&transfer->dst[i]),
				       sg_virt(&transfer->src[i]),
				       transfer->src[i].length);
		cond_resched();
	}
	if (same)
		dcbm_count(DCBM_VERIFIED_BYTES, desc->len);
	dcbm_count(DCBM_VERIFY_NS, ktime_get_ns() - start);
	return same;
}

/*
 * Decide once which descriptors are in flight, because callbacks may still
 * come.
 */
static void dcbm_mark_in_flight(struct dcbm_transfer *transfer)
{
	unsigned int i;

	for (i = 0; i < transfer->next; i++) {
		struct dcbm_desc *desc = &transfer->descs[i];

		desc->in_flight = READ_ONCE(desc->status) == -EINPROGRESS;
		if (desc->in_flight)
			bitmap_set(transfer->in_flight, desc->first, desc->nr);
	}
}

/* Must a copy be verified although the driver reports success? */
static bool dcbm_needs_verify(const struct dcbm_quirks *quirks)
{
	return !quirks->reports_errors ||
	       READ_ONCE(dcbm_tuning.verify) == DCBM_VERIFY_ALWAYS;
}

/**
 * dcbm_spoil() - make each destination differ from its source
 * @transfer: the transfer, not mapped yet
 *
 * Context: process context.
 */
void dcbm_spoil(struct dcbm_transfer *transfer)
{
	unsigned int i;

	if (!dcbm_needs_verify(transfer->ch->quirks))
		return;
	for (i = 0; i < transfer->nr_segments; i++) {
		size_t last = transfer->src[i].length - sizeof(long);
		unsigned long word;

		/* A source that cannot be read now does not pass later. */
		if (copy_mc_to_kernel(&word, sg_virt(&transfer->src[i]) + last,
				      sizeof(word)))
			continue;
		*(unsigned long *)(sg_virt(&transfer->dst[i]) + last) = ~word;
	}
}

/* Count a descriptor. Return 0 if its segments are complete. */
static int dcbm_desc_result(struct dcbm_transfer *transfer,
			    const struct dcbm_desc *desc, bool verify)
{
	if (desc->in_flight) {
		dcbm_count(DCBM_TIMEOUTS, 1);
		return -EBUSY;
	}
	if (desc->status) {
		dcbm_count(DCBM_ERRORS, desc->status != -EAGAIN);
		return desc->status;
	}
	dcbm_count(DCBM_COMPLETED, 1);
	/* While it is mapped the content belongs to the device. */
	if (!transfer->mapped && (!verify || dcbm_desc_matches(transfer, desc)))
		return 0;
	/*
	 * Hold the segments of a completion that cannot be trusted. It still
	 * counts as a completion, so the descriptor itself is not in flight.
	 */
	if (verify && !transfer->ch->quirks->done_means_idle)
		bitmap_set(transfer->in_flight, desc->first, desc->nr);
	if (!transfer->mapped)
		dcbm_count(DCBM_VERIFY_FAILURES, 1);
	return -EIO;
}

/*
 * The descriptor's folios are not copied: the batch is no comparison, unless
 * channels have lost it.
 */
static void dcbm_fail_pairs(struct dcbm_job *job, const struct dcbm_desc *desc,
			    int err)
{
	unsigned int i;

	if (err != -EAGAIN || !dcbm_has_lost(job))
		job->choice = NULL;
	for (i = desc->first; i < desc->first + desc->nr; i++)
		WRITE_ONCE(job->batch->pairs[desc->transfer->pair[i]].status,
			   err);
}

/* Set the status of the pairs. Return how many bytes are copied. */
static size_t dcbm_set_status(struct dcbm_job *job,
			      struct dcbm_transfer *transfer)
{
	bool verify = dcbm_needs_verify(transfer->ch->quirks);
	size_t copied = 0;
	unsigned int i;

	for (i = 0; i < transfer->nr_descs; i++) {
		struct dcbm_desc *desc = &transfer->descs[i];
		int err = dcbm_desc_result(transfer, desc, verify);

		if (err)
			dcbm_fail_pairs(job, desc, err);
		else
			copied += desc->len;
	}
	dcbm_count(DCBM_COPIED_BYTES, copied);
	job->batch->dma_bytes += copied;
	return copied;
}

/*
 * Leave the descriptors that were not submitted to the CPU. The transfer then
 * consists of the others. The engine has not failed: nothing was outstanding
 * when the time was over, and the task may have been as late as the device. A
 * device that was slow shows in the rate.
 */
static void dcbm_cut(struct dcbm_job *job, struct dcbm_transfer *transfer)
{
	while (transfer->nr_descs > transfer->next) {
		struct dcbm_desc *desc = &transfer->descs[--transfer->nr_descs];

		transfer->bytes -= desc->len;
		dcbm_fail_pairs(job, desc, -EAGAIN);
	}
}

/*
 * The groups of two transfers take turns, so the sample is of all that the
 * channel has copied meanwhile.
 *
 * If one look at a channel finds two transfers complete, nothing tells when the
 * first one was, and only that one is a sample: of all the time.
 */
static void dcbm_learn_transfer(const struct dcbm_job *job,
				struct dcbm_transfer *transfer)
{
	struct dcbm_channel *ch = transfer->ch;
	u64 now = ktime_get_ns();

	if (ch->last_done < job->now)
		/* Until @last_done the channel had another transfer. */
		dcbm_learn(job, transfer,
			   ch->done_bytes -
			   max(transfer->begun_bytes, ch->last_bytes),
			   now - max(transfer->begun, ch->last_done));
	ch->last_done = now;
	ch->last_bytes = ch->done_bytes;
}

/**
 * dcbm_complete() - end a transfer whose callbacks have all come
 * @job:	the job
 * @transfer:	the transfer
 *
 * Context: process context. May sleep.
 * Return: false if a completion was false, for dcbm_complete_hung().
 */
bool dcbm_complete(struct dcbm_job *job, struct dcbm_transfer *transfer)
{
	struct dcbm_channel *ch = transfer->ch;
	u64 start = ktime_get_ns();

	bitmap_zero(transfer->in_flight, DCBM_MAX_SEGMENTS);
	dcbm_unmap(transfer, 0);
	ch->claimed -= transfer->bytes;
	ch->copies_since = start;
	ch->may_claim = true;
	dcbm_cut(job, transfer);
	if (!transfer->next) {
		job->choice = NULL;
		dcbm_engine_failed(ch->engine, "a full queue");
	} else if (dcbm_set_status(job, transfer) == transfer->bytes) {
		transfer->cpu_ns += ktime_get_ns() - start;
		dcbm_learn_transfer(job, transfer);
	} else {
		dcbm_engine_failed(ch->engine, "errors");
	}
	job->other_ns += ktime_get_ns() - start;
	ch->lost = !bitmap_empty(transfer->in_flight, DCBM_MAX_SEGMENTS);
	transfer->busy = ch->lost;
	return !ch->lost;
}

/**
 * dcbm_complete_hung() - end the job of a channel that hangs
 * @job:	the job
 * @ch:		the channel: either a group was not complete in time, or a
 *		completion was false, whose transfer has ended
 *
 * Context: process context. May sleep.
 */
void dcbm_complete_hung(struct dcbm_job *job, struct dcbm_channel *ch)
{
	dcbm_engine_failed(ch->engine, ch->lost ? "a false completion" :
						  "a late completion");
	for (struct dcbm_transfer *transfer = ch->transfers;
	     transfer < dcbm_transfers_end(ch); transfer++) {
		/* The one that ended above has its pages marked. */
		if (!transfer->busy || !transfer->mapped)
			continue;
		bitmap_zero(transfer->in_flight, DCBM_MAX_SEGMENTS);
		dcbm_mark_in_flight(transfer);
		dcbm_set_status(job, transfer);
	}
	dcbm_channel_hung(ch);
}
