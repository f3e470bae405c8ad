// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: dcbm, copy by DMA engines
 *
 * A dmaengine client that copies a batch of folios over many channels. It has
 * two migrators:
 *
 *	dcbm	channels copy while the calling CPU sleeps. The CPU copies, too,
 *		if they are slower than itself.
 *	auto	channels, the calling CPU and idle CPUs copy together, or some
 *		of them if that is faster. Without channels it is mtcopy.
 *
 * The migrators reject a batch, with nothing done to it, if they have nothing
 * but the calling CPU to copy it: because no channel is free, because all
 * engines rest after failures, because the CPU is as fast without them, or
 * because a source has memory tags, which engines do not copy. The CPU copies
 * rejected batches in the move phase, and each folio that a channel failed to
 * copy.
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

/*
 * Has any source memory tags? An engine only copies data, copy_highpage() both.
 * No source can get tags while it is copied: it is locked, unmapped and has no
 * unexpected references.
 */
#ifdef CONFIG_ARM64_MTE
static bool dcbm_folio_tagged(struct folio *folio)
{
	unsigned long k;

	if (folio_test_hugetlb(folio))
		return folio_test_hugetlb_mte_tagged(folio);
	for (k = 0; k < folio_nr_pages(folio); k++)
		if (page_mte_tagged(folio_page(folio, k)))
			return true;
	return false;
}

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

/* Give back the channels that would not gain anything for the batch. */
static void dcbm_keep_useful(struct dcbm_job *job)
{
	unsigned int i = 0;

	dcbm_expect(job);
	while (i < job->nr) {
		if (dcbm_is_useful(job, job->ch[i])) {
			i++;
			continue;
		}
		dcbm_unclaim(job->ch[i]->slot);
		job->ch[i] = job->ch[--job->nr];
		/* Their rates are those of another number of channels now. */
		dcbm_expect(job);
	}
}

/*
 * Claim the channels for a batch, at most one for each DCBM_MIN_TRANSFER. The
 * return value tells why there are none.
 */
static enum dcbm_counter dcbm_claim_for_batch(struct dcbm_job *job)
{
	const struct ferry_batch *batch = job->batch;
	enum dcbm_counter why;

	why = dcbm_claim(job, clamp(batch->bytes / DCBM_MIN_TRANSFER, 1,
				    READ_ONCE(dcbm_tuning.channels)));
	if (!job->nr)
		return why;
	dcbm_keep_useful(job);
	if (!job->nr)
		return DCBM_REJECTED_SLOWER;
	/* Last: most batches are rejected above and skip the scan. */
	if (!dcbm_tagged(batch))
		return DCBM_REJECTED_BUSY;
	dcbm_give_back(job);
	return DCBM_REJECTED_TAGGED;
}

/*
 * Choose the way to copy the job's batch, and give back channels or helpers
 * that do not take part. The return value tells why there are no channels.
 */
static enum dcbm_counter dcbm_assign(struct dcbm_job *job)
{
	dcbm_choose(job);
	if (job->way == DCBM_BY_CPUS) {
		dcbm_give_back(job);
		return DCBM_REJECTED_SLOWER;
	}
	if (job->way == DCBM_BY_CHANNELS &&
	    ferry_mtcopy_nr_helpers(job->cpus)) {
		ferry_mtcopy_end(job->cpus);
		job->cpus = ferry_mtcopy_begin(job->batch, 0);
	}
	return DCBM_REJECTED_BUSY;
}

/*
 * Copy a batch by channels, the calling CPU and up to @max_helpers idle ones.
 */
static int dcbm_copy(struct ferry_batch *batch, unsigned int max_helpers,
		     bool spares_cpus)
{
	struct dcbm_job job = { .batch = batch, .spares_cpus = spares_cpus };
	enum dcbm_counter why = dcbm_claim_for_batch(&job);
	bool copies;

	if (job.nr || max_helpers)
		job.cpus = ferry_mtcopy_begin(batch, max_helpers);
	if (job.cpus && job.nr)
		why = dcbm_assign(&job);
	copies = job.cpus && (job.nr || job.measured ||
			      ferry_mtcopy_nr_helpers(job.cpus));
	if (!copies || (!job.nr && !job.measured))
		dcbm_count(why, 1);
	if (copies) {
		dcbm_copy_job(&job);
		return 0;
	}
	if (job.cpus)
		ferry_mtcopy_end(job.cpus);
	dcbm_give_back(&job);
	/* The next batch will hardly find more, unless others were in use. */
	batch->serial = why != DCBM_REJECTED_BUSY;
	return -EAGAIN;
}

static int dcbm_copy_by_channels(struct ferry_batch *batch)
{
	return dcbm_copy(batch, 0, true);
}

static int dcbm_copy_by_all(struct ferry_batch *batch)
{
	return dcbm_copy(batch, MTCOPY_MAX_HELPERS, false);
}

static int dcbm_enable(void)
{
	return dcbm_acquire_all(true);
}

static int dcbm_enable_auto(void)
{
	return dcbm_acquire_all(false);
}

static const struct ferry_migrator dcbm_migrator = {
	.name = "dcbm",
	.owner = THIS_MODULE,
	.groups = dcbm_groups,
	.enable = dcbm_enable,
	.disable = dcbm_release_all,
	.copy = dcbm_copy_by_channels,
};

static const struct ferry_migrator dcbm_auto = {
	.name = "auto",
	.owner = THIS_MODULE,
	.enable = dcbm_enable_auto,
	.disable = dcbm_release_all,
	.copy = dcbm_copy_by_all,
};

static int __init dcbm_init(void)
{
	int err;

	dcbm_copy_init();
	err = dcbm_choices_init();
	if (err)
		return err;
	err = dcbm_notify_init();
	if (err)
		goto choices_exit;
	err = ferry_register(&dcbm_migrator);
	if (err)
		goto exit;
	err = ferry_register(&dcbm_auto);
	if (err)
		goto unregister;
	dcbm_debugfs_init();
	return 0;
unregister:
	ferry_unregister(&dcbm_migrator);
exit:
	dcbm_notify_exit();
choices_exit:
	dcbm_choices_exit();
	return err;
}
module_init(dcbm_init);

static void __exit dcbm_exit(void)
{
	dcbm_debugfs_exit();
	ferry_unregister(&dcbm_auto);
	ferry_unregister(&dcbm_migrator);
	dcbm_notify_exit();
	dcbm_hung_exit();
	dcbm_choices_exit();
}
module_exit(dcbm_exit);

MODULE_DESCRIPTION("Folio copy by DMA engines for page migration");
MODULE_LICENSE("GPL");
