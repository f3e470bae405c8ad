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
 * The CPU may hit poison when it reads a source. It reads the source by the
 * copy that survives a machine check, where the architecture has one, into a
 * buffer on the stack and compares that. A source that cannot be read counts as
 * different, because nothing proves the copy, and is left to the move phase,
 * which reports it.
 *
 * The device of a hung channel may still write the descriptors in flight. Their
 * segments are marked in flight and the channel goes to hung.c. Nothing that
 * shares a mapping with them is unmapped, so their completed neighbours, which
 * cannot be verified while they are mapped, are left to the CPU; or they are
 * marked in flight too, if only verification could have told that the device
 * has finished with them.
 *
 * A completion that verification refutes does not show that the device has
 * stopped, unless the driver's quirks say so: it may have come early, and
 * nothing will tell when the device does stop. So the channel hangs until its
 * driver is unbound, with the segments of the descriptor. To the folios this is
 * no different from a descriptor in flight. An error that a driver reports is
 * taken as the end of the descriptor.
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

static bool dcbm_segment_matches(struct dcbm_transfer *transfer, unsigned int i)
{
	const void *src = sg_virt(&transfer->src[i]);
	const void *dst = sg_virt(&transfer->dst[i]);
	size_t offset, len = transfer->src[i].length;

	for (offset = 0; offset < len; offset += PAGE_SIZE) {
		if (!dcbm_same_bytes(dst + offset, src + offset, PAGE_SIZE))
			return false;
	}
	cond_resched();
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

	for (i = desc->first; same && i < desc->first + desc->nr; i++)
		same = dcbm_segment_matches(transfer, i);
	if (same)
		dcbm_count(DCBM_VERIFIED_BYTES, desc->len);
	dcbm_count(DCBM_VERIFY_NS, ktime_get_ns() - start);
	return same;
}

/*
 * Decide once which descriptors are in flight, because callbacks may still
 * come. Without its sentinel's completion no completion of a group counts.
 */
static void dcbm_mark_in_flight(struct dcbm_channel *ch)
{
	bool sentinel = ch->quirks->trust == DCBM_TRUST_SENTINEL;
	unsigned int i;

	for (i = ch->first; i < ch->next; i++) {
		struct dcbm_desc *desc = &ch->transfer.descs[i];

		desc->in_flight = sentinel ||
				  READ_ONCE(desc->status) == -EINPROGRESS;
		if (desc->in_flight)
			bitmap_set(ch->transfer.in_flight, desc->first,
				   desc->nr);
	}
}

static void dcbm_account(const struct dcbm_desc *desc)
{
	int status = READ_ONCE(desc->status);

	if (desc->in_flight)
		dcbm_count(DCBM_TIMEOUTS, 1);
	else if (!status)
		dcbm_count(DCBM_COMPLETED, 1);
	else if (status != -EAGAIN)
		dcbm_count(DCBM_ERRORS, 1);
}

/* Must a copy be verified although the driver reports success? */
static bool dcbm_needs_verify(const struct dcbm_quirks *quirks)
{
	return quirks->trust == DCBM_TRUST_NONE ||
	       READ_ONCE(dcbm_tuning.verify) == DCBM_VERIFY_ALWAYS;
}

/* The result of a descriptor: 0 if its segments are complete. */
static int dcbm_desc_result(struct dcbm_channel *ch,
			    const struct dcbm_desc *desc, bool verify)
{
	struct dcbm_transfer *transfer = &ch->transfer;

	if (desc->in_flight)
		return -EBUSY;
	if (desc->status)
		return desc->status;
	/* While it is mapped the content belongs to the device. */
	if (!transfer->mapped && (!verify || dcbm_desc_matches(transfer, desc)))
		return 0;
	/*
	 * Hold the segments of a completion that cannot be trusted. It still
	 * counts as a completion, so the descriptor itself is not in flight.
	 */
	if (verify && !ch->quirks->done_means_idle)
		bitmap_set(transfer->in_flight, desc->first, desc->nr);
	if (!transfer->mapped)
		dcbm_count(DCBM_VERIFY_FAILURES, 1);
	return -EIO;
}

/* Can the channel, whose descriptors have their results, be used again? */
static bool dcbm_reusable(struct dcbm_channel *ch)
{
	if (ch->timed_out)
		return false;
	if (bitmap_empty(ch->transfer.in_flight, DCBM_MAX_SEGMENTS))
		return true;
	/*
	 * Count a callback that never comes: nothing will tell when the device
	 * has stopped.
	 */
	atomic_inc(&ch->pending);
	return false;
}

/**
 * dcbm_complete_channel() - set the status of the pairs that a channel copied
 * @job:	the job
 * @ch:		one of its channels, after dcbm_submit_and_wait()
 *
 * Context: process context. May sleep.
 * Return: true if the channel hangs and does not belong to the job any more.
 */
bool dcbm_complete_channel(struct dcbm_job *job, struct dcbm_channel *ch)
{
	struct dcbm_transfer *transfer = &ch->transfer;
	bool verify = dcbm_needs_verify(ch->quirks);
	unsigned int i, k;

	bitmap_zero(transfer->in_flight, DCBM_MAX_SEGMENTS);
	if (ch->timed_out)
		dcbm_mark_in_flight(ch);
	else
		dcbm_unmap(transfer, ch, 0);
	for (i = 0; i < transfer->nr_descs; i++) {
		struct dcbm_desc *desc = &transfer->descs[i];
		int err = dcbm_desc_result(ch, desc, verify);

		dcbm_account(desc);
		for (k = desc->first; err && k < desc->first + desc->nr; k++)
			job->batch->pairs[transfer->pair[k]].status = err;
	}
	if (dcbm_reusable(ch))
		return false;
	dcbm_channel_hung(ch);
	return true;
}
