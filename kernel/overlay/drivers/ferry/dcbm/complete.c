// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Settling what a channel has copied
 *
 * A folio may be moved to its destination when every descriptor of it has completed, and its
 * completion can be believed. Where the driver reports errors, its word is enough; where it
 * cannot, the content decides: both sides are compared after they were unmapped. A folio with
 * a failed descriptor is left to the CPU, which copies it in the move phase; its neighbours
 * are not concerned.
 *
 * Descriptors in flight on a channel that is stuck may still write. The channel is retired, and
 * what they may write is put into quarantine. Nothing that shares a mapping with them is
 * unmapped, so their completed neighbours, whose content cannot be looked at before, are left to
 * the CPU; or held like them, where only that look could have told that the device has ended.
 *
 * A completion that the comparison refutes is no sign that the device has ended, unless the
 * engine's row says so: it may have come early, and nothing will tell when the device does end.
 * So the channel is retired for good, with what the descriptor copies, until its driver is
 * unbound. To the folios this is no different from a descriptor in flight. An error that a driver
 * reports is believed to be the end of the descriptor.
 *
 * Lock order: none are taken.
 */

#include <linux/bitmap.h>

#include "internal.h"

static void dcbm_fail(struct ferry_batch *batch, const struct dcbm_share *share,
		      const struct dcbm_desc *desc, int err)
{
	unsigned int i;

	for (i = desc->first; i < desc->first + desc->nr; i++)
		batch->pairs[share->pair[i]].status = err;
}

/*
 * Decide once which descriptors are in flight: callbacks may come while this is done. Without
 * its sentinel's completion no other one of a group counts.
 */
static void dcbm_keep(struct dcbm_channel *ch)
{
	bool sentinel = ch->engine->proof == DCBM_PROOF_SENTINEL;
	unsigned int i;

	for (i = ch->first; i < ch->next; i++) {
		struct dcbm_desc *desc = &ch->share.descs[i];

		desc->kept = sentinel || READ_ONCE(desc->status) == -EINPROGRESS;
		if (desc->kept)
			bitmap_set(ch->share.kept, desc->first, desc->nr);
	}
}

static void dcbm_tally(const struct dcbm_desc *desc)
{
	int status = READ_ONCE(desc->status);

	if (desc->kept)
		dcbm_count(DCBM_TIMEOUTS, 1);
	else if (!status)
		dcbm_count(DCBM_COMPLETED, 1);
	else if (status != -EAGAIN)
		dcbm_count(DCBM_ERRORS, 1);
}

/* Is the content to be compared, though the driver reports success? */
static bool dcbm_doubts(const struct dcbm_engine *engine)
{
	return engine->proof == DCBM_PROOF_COMPARE ||
	       READ_ONCE(dcbm_tuning.verify) == DCBM_VERIFY_ALWAYS;
}

/*
 * Hold the pieces of a completion that nothing proves. It counts as one all the same, so the
 * descriptor is not kept.
 */
static void dcbm_unproved(struct dcbm_channel *ch, const struct dcbm_desc *desc)
{
	if (!ch->engine->ends)
		bitmap_set(ch->share.kept, desc->first, desc->nr);
}

/* What a descriptor came to: 0 if its pieces are complete. */
static int dcbm_outcome(struct dcbm_channel *ch, const struct dcbm_desc *desc, bool doubts)
{
	if (desc->kept)
		return -EBUSY;
	if (desc->status)
		return desc->status;
	/* While it is mapped the content is not the CPU's to see. */
	if (!ch->share.mapped && (!doubts || dcbm_same(&ch->share, desc)))
		return 0;
	if (doubts)
		dcbm_unproved(ch, desc);
	if (!ch->share.mapped)
		dcbm_count(DCBM_VERIFY_FAILURES, 1);
	return -EIO;
}

/* Is the channel, whose descriptors have been looked at, fit for service? */
static bool dcbm_fit(struct dcbm_channel *ch)
{
	if (ch->stuck)
		return false;
	if (bitmap_empty(ch->share.kept, DCBM_MAX_PIECES))
		return true;
	/* A callback that never comes: nothing will tell when the device has ended. */
	atomic_inc(&ch->pending);
	return false;
}

/**
 * dcbm_settle() - find out which pairs a channel has copied, and make it fit for the next share
 * @run:	the run
 * @ch:		one of its channels, after dcbm_drive()
 *
 * Context: process context. May sleep.
 * Return: true if the channel was retired, and is the run's no more.
 */
bool dcbm_settle(struct dcbm_run *run, struct dcbm_channel *ch)
{
	struct dcbm_share *share = &ch->share;
	bool doubts = dcbm_doubts(ch->engine);
	unsigned int i;

	bitmap_zero(share->kept, DCBM_MAX_PIECES);
	if (ch->stuck)
		dcbm_keep(ch);
	else
		dcbm_unmap(share, ch, 0);
	for (i = 0; i < share->nr_descs; i++) {
		struct dcbm_desc *desc = &share->descs[i];
		int err = dcbm_outcome(ch, desc, doubts);

		dcbm_tally(desc);
		if (err)
			dcbm_fail(run->batch, share, desc, err);
	}
	if (dcbm_fit(ch))
		return false;
	/* From here on it is the quarantine's. */
	dcbm_retire(ch);
	return true;
}
