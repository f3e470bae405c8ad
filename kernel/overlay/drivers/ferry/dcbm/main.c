// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: dcbm, copy by DMA engines
 *
 * A dmaengine client that copies a batch of folios over many channels. Each
 * file may call those above it:
 *
 *	quirks.c	quirks of each DMA engine driver
 *	map.c		a batch is split into transfers, which are mapped
 *	channels.c	the channels held, and which batch uses them
 *	hung.c		channels whose device may still write
 *	complete.c	the result of each folio, verified if necessary
 *	submit.c	descriptors are submitted, callbacks awaited
 *	copy.c		a job: one batch, its channels, its rounds
 *	calibrate.c	the offload cost model
 *	hotplug.c	when channels are requested and released
 *	sysfs.c		knobs and counters
 *	debugfs.c	channels and costs
 *
 * dcbm rejects a batch, with nothing done to it, if no channel is free, if the
 * CPU would be faster, or if a source has memory tags, which engines do not
 * copy. The CPU copies rejected batches, and each folio that a channel failed
 * to copy.
 */

#include <linux/ferry.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/module.h>
#ifdef CONFIG_ARM64_MTE
#include <linux/cpufeature.h>
#include <asm/mte.h>
#endif

#include "internal.h"

/* Fewer bytes do not repay another channel's interrupt. */
#define DCBM_MIN_TRANSFER	SZ_64K

/*
 * Has any source memory tags? An engine only copies data, copy_highpage() both.
 * No source can get tags while it is copied: it is locked, unmapped and has no
 * unexpected references.
 */
#ifdef CONFIG_ARM64_MTE
static bool dcbm_tagged(const struct ferry_batch *batch)
{
	unsigned long k;
	unsigned int i;

	if (!system_supports_mte())
		return false;
	for (i = 0; i < batch->nr; i++) {
		struct folio *src = batch->pairs[i].src;

		for (k = 0; k < folio_nr_pages(src); k++)
			if (page_mte_tagged(folio_page(src, k)))
				return true;
	}
	return false;
}
#else
static bool dcbm_tagged(const struct ferry_batch *batch)
{
	return false;
}
#endif

static int dcbm_reject(enum dcbm_counter reason, int err)
{
	dcbm_count(reason, 1);
	return err;
}

/*
 * Claim the channels for a batch, at most one for each DCBM_MIN_TRANSFER.
 * -EBUSY if none is free, -EAGAIN if the CPU would be faster.
 */
static int dcbm_claim_for_batch(struct dcbm_job *job)
{
	const struct ferry_batch *batch = job->batch;
	bool force = READ_ONCE(dcbm_tuning.force_offload);

	if (!force && !dcbm_worth_offloading(batch))
		return dcbm_reject(DCBM_REJECTED_SLOWER, -EAGAIN);
	dcbm_claim(job, clamp(batch->bytes / DCBM_MIN_TRANSFER, 1,
			      READ_ONCE(dcbm_tuning.channels)), NULL);
	if (!job->nr)
		return dcbm_reject(DCBM_REJECTED_BUSY, -EBUSY);
	if (!force)
		dcbm_keep_nearest(job, dcbm_pick_channels(job));
	return job->nr ? 0 : dcbm_reject(DCBM_REJECTED_SLOWER, -EAGAIN);
}

/**
 * dcbm_copy() - copy a batch by DMA engines
 * @batch: the batch
 *
 * Context: process context, all folios locked. Does not allocate.
 * Return: 0; -EBUSY if no channel is free, -EAGAIN if the CPU would be faster,
 * -EOPNOTSUPP if a source has memory tags.
 */
static int dcbm_copy(struct ferry_batch *batch)
{
	struct dcbm_job job = { .batch = batch };
	int err = dcbm_claim_for_batch(&job);

	if (err)
		return err;
	/* Last: most batches are rejected above and skip the scan. */
	if (dcbm_tagged(batch)) {
		dcbm_keep_nearest(&job, 0);
		return dcbm_reject(DCBM_REJECTED_TAGGED, -EOPNOTSUPP);
	}
	dcbm_copy_job(&job);
	return 0;
}

static const struct ferry_migrator dcbm_migrator = {
	.name = "dcbm",
	.owner = THIS_MODULE,
	.groups = dcbm_groups,
	.enable = dcbm_acquire_all,
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
	dcbm_hung_exit();
}
module_exit(dcbm_exit);

MODULE_DESCRIPTION("Folio copy by DMA engines for page migration");
MODULE_LICENSE("GPL");
