// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: dcbm, copy by DMA engines
 *
 * A dmaengine client that copies a batch of folios over many channels. One concept a file:
 *
 *	quirks.c	what is known of each driver
 *	channels.c	the channels held, and who may use them
 *	hotplug.c	when they are asked back
 *	share.c		a batch is cut, a share for each channel
 *	map.c		a share is mapped for its channel's device
 *	submit.c	descriptors are submitted, callbacks awaited
 *	complete.c	the result of each folio
 *	verify.c	where the driver's word is not enough
 *	hung.c		memory that a device may still write
 *	calibrate.c	the offload cost model
 *
 * Life cycle of a batch: channels are claimed, at most one for each DCBM_MIN_SHARE; if none is
 * free, the CPU would be faster, or there are memory tags, which engines do not copy, the batch
 * is refused and nothing has happened. Otherwise it is cut, mapped, copied and settled in
 * rounds, mostly one, and the channels are given back, but for those that the quarantine keeps.
 * No round begins after DCBM_BATCH_TIMEOUTS.
 *
 * No memory is allocated: all that a channel needs exists since it is held, and a run lies on
 * the caller's stack.
 *
 * Lock order: none of ours on the copy path; drivers take theirs.
 */

#include <linux/ferry.h>
#include <linux/jiffies.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/module.h>
#ifdef CONFIG_ARM64_MTE
#include <linux/cpufeature.h>
#include <asm/mte.h>
#endif

#include "internal.h"

/* Less is not worth another channel's interrupt. */
#define DCBM_MIN_SHARE	SZ_64K

/* Give back all channels but the @nr nearest. */
static void dcbm_keep_only(struct dcbm_run *run, unsigned int nr)
{
	while (run->nr > nr)
		dcbm_unclaim(run->ch[--run->nr]);
}

/* Channels that were retired have no place in later rounds. */
static void dcbm_drop_retired(struct dcbm_run *run, const unsigned long *stuck)
{
	unsigned int i, nr = 0;

	for (i = 0; i < run->nr; i++)
		if (!test_bit(i, stuck))
			run->ch[nr++] = run->ch[i];
	run->nr = nr;
}

static void dcbm_fail_share(struct dcbm_run *run, const struct dcbm_share *share)
{
	unsigned int i;

	for (i = 0; i < share->nr_pieces; i++)
		run->batch->pairs[share->pair[i]].status = -EIO;
}

static void dcbm_map_all(struct dcbm_run *run)
{
	unsigned int i;

	for (i = 0; i < run->nr; i++) {
		struct dcbm_share *share = &run->ch[i]->share;

		if (!share->nr_pieces || !dcbm_map(share, run->ch[i]))
			continue;
		dcbm_count(DCBM_MAP_FAILURES, 1);
		dcbm_fail_share(run, share);
	}
}

static void dcbm_round(struct dcbm_run *run)
{
	DECLARE_BITMAP(stuck, DCBM_MAX_CHANNELS) = {};
	unsigned int i;

	dcbm_map_all(run);
	dcbm_drive(run);
	for (i = 0; i < run->nr; i++)
		if (dcbm_settle(run, run->ch[i]))
			set_bit(i, stuck);
	dcbm_drop_retired(run, stuck);
}

/**
 * dcbm_copy_with() - copy a run's batch by the run's channels, and give them back
 * @run: the run, with at least one channel
 *
 * Context: process context, all folios locked or otherwise the caller's alone. May sleep, for as
 * long as dcbm_drive() says.
 */
void dcbm_copy_with(struct dcbm_run *run)
{
	struct ferry_batch *batch = run->batch;
	unsigned int i;

	/* Complete unless a descriptor fails. */
	for (i = 0; i < batch->nr; i++)
		batch->pairs[i].status = 0;
	run->start = jiffies;
	while (!dcbm_overdue(run) && dcbm_cut(run))
		dcbm_round(run);
	/* What is left when no channel, or no time, is. */
	for (i = run->pair; i < batch->nr; i++)
		batch->pairs[i].status = -EAGAIN;
	dcbm_keep_only(run, 0);
}

#ifdef CONFIG_ARM64_MTE
static bool dcbm_folio_tagged(struct folio *folio)
{
	unsigned long i;

	for (i = 0; i < folio_nr_pages(folio); i++)
		if (page_mte_tagged(folio_page(folio, i)))
			return true;
	return false;
}

/*
 * Has any source memory tags? An engine copies data only, copy_highpage() both. None can get
 * some while it is copied: sources are locked, unmapped and have no unexpected references.
 */
static bool dcbm_tagged(const struct ferry_batch *batch)
{
	unsigned int i;

	if (!system_supports_mte())
		return false;
	for (i = 0; i < batch->nr; i++)
		if (dcbm_folio_tagged(batch->pairs[i].src))
			return true;
	return false;
}
#else
static bool dcbm_tagged(const struct ferry_batch *batch)
{
	return false;
}
#endif

static int dcbm_refuse(enum dcbm_counter why, int err)
{
	dcbm_count(why, 1);
	return err;
}

/* Claim the channels for a batch. -EBUSY if none is free, -EAGAIN if the CPU would be faster. */
static int dcbm_engage(struct dcbm_run *run)
{
	const struct ferry_batch *batch = run->batch;
	bool always = READ_ONCE(dcbm_tuning.force_offload);

	if (!always && !dcbm_may_pay(batch))
		return dcbm_refuse(DCBM_REJECTED_SLOWER, -EAGAIN);
	dcbm_claim(run, clamp(batch->bytes / DCBM_MIN_SHARE, 1,
			      READ_ONCE(dcbm_tuning.channels)), NULL);
	if (!run->nr)
		return dcbm_refuse(DCBM_REJECTED_BUSY, -EBUSY);
	if (!always)
		dcbm_keep_only(run, dcbm_choose(run));
	return run->nr ? 0 : dcbm_refuse(DCBM_REJECTED_SLOWER, -EAGAIN);
}

/**
 * dcbm_copy() - copy a batch by DMA engines
 * @batch: the batch
 *
 * Context: process context, all folios locked. Does not allocate.
 * Return: 0; -EBUSY if no channel is free, -EAGAIN if the CPU would be faster, -EOPNOTSUPP if
 * there are memory tags.
 */
static int dcbm_copy(struct ferry_batch *batch)
{
	struct dcbm_run run = { .batch = batch };
	int err = dcbm_engage(&run);

	if (err)
		return err;
	/* After what refuses most batches, which so costs nothing more. */
	if (dcbm_tagged(batch)) {
		dcbm_keep_only(&run, 0);
		return dcbm_refuse(DCBM_REJECTED_TAGGED, -EOPNOTSUPP);
	}
	dcbm_copy_with(&run);
	return 0;
}

static const struct ferry_migrator dcbm_migrator = {
	.name = "dcbm",
	.owner = THIS_MODULE,
	.groups = dcbm_groups,
	.enable = dcbm_hold,
	.disable = dcbm_release_all,
	.copy = dcbm_copy,
};

static int __init dcbm_init(void)
{
	int err = dcbm_notify_init();

	if (err)
		return err;
	err = ferry_register(&dcbm_migrator);
	if (err) {
		dcbm_notify_exit();
		return err;
	}
	dcbm_debugfs_init();
	return 0;
}
module_init(dcbm_init);

static void __exit dcbm_exit(void)
{
	dcbm_debugfs_exit();
	ferry_unregister(&dcbm_migrator);
	dcbm_notify_exit();
	dcbm_quarantine_exit();
}
module_exit(dcbm_exit);

MODULE_DESCRIPTION("Folio copy by DMA engines for page migration");
MODULE_LICENSE("GPL");
