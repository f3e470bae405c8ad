// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Chunks of mtcopy
 *
 * A batch is one run of bytes, folio after folio, and a chunk is a part of it
 * that one CPU claims: several small folios, or a part of a large one. A CPU
 * claims chunks in ascending order, so a cursor that only moves forward finds
 * the folio of each chunk.
 *
 * A poisoned page fails its own folio, by the pair's status, and no other. Any
 * number of CPUs may write that status, because all write the same value.
 */

#include <linux/copy_nontemporal.h>
#include <linux/ferry.h>
#include <linux/gfp.h>
#include <linux/highmem.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/sizes.h>

#include "internal.h"

/* Large enough to exceed most caches, small enough to be available at boot. */
#define MTCOPY_CALIBRATION_ORDER	min(MAX_PAGE_ORDER, 9)
#define MTCOPY_CALIBRATION_RUNS		5

/* Non-temporal stores were the faster ones in mtcopy_calibrate(). */
static bool mtcopy_nontemporal_faster;

static int mtcopy_page(struct page *dst, struct page *src, bool nontemporal)
{
	if (!copy_page_nontemporal_possible() || !nontemporal)
		return copy_mc_highpage(dst, src) ? -EHWPOISON : 0;
	if (!copy_page_nontemporal_mc(page_address(dst), page_address(src)))
		return 0;
	memory_failure_queue(page_to_pfn(src), 0);
	return -EHWPOISON;
}

/* Copy the pages of @pair between the batch offsets @start and @end. */
static void mtcopy_copy_range(struct ferry_pair *pair, size_t start, size_t end,
			      bool nontemporal)
{
	size_t i = (start - pair->offset) >> PAGE_SHIFT;
	size_t last = (end - pair->offset) >> PAGE_SHIFT;

	/* Each poisoned page raises a machine check: stop at the first. */
	for (; i < last && !READ_ONCE(pair->status); i++)
		if (mtcopy_page(folio_page(pair->dst, i),
				folio_page(pair->src, i), nontemporal))
			WRITE_ONCE(pair->status, -EHWPOISON);
}

/**
 * mtcopy_chunk() - copy one chunk
 * @batch:	the batch
 * @start:	offset of the chunk in the batch
 * @end:	offset of its end
 * @cursor:	index of a pair not behind the chunk's first; set to its last
 * @nontemporal: use non-temporal stores
 *
 * When this returns, the stores are complete for a CPU that synchronises with
 * the calling one.
 *
 * Context: any, all folios locked.
 */
void mtcopy_chunk(struct ferry_batch *batch, size_t start, size_t end,
		  unsigned int *cursor, bool nontemporal)
{
	while (start < end) {
		struct ferry_pair *pair = &batch->pairs[*cursor];
		size_t pair_end = pair->offset + folio_size(pair->src);

		if (start < pair_end) {
			mtcopy_copy_range(pair, start, min(end, pair_end),
					  nontemporal);
			start = min(end, pair_end);
		}
		if (start < end)
			++*cursor;
	}
	if (nontemporal)
		copy_nontemporal_drain();
}

/**
 * mtcopy_use_nontemporal() - decide between cached and non-temporal stores
 * @batch: the batch
 *
 * With nontemporal set to auto, mtcopy uses non-temporal stores for demotion,
 * because no task is expected to read the destination soon, and only if
 * mtcopy_calibrate() found them to be faster on this machine.
 *
 * Context: any.
 * Return: true for non-temporal stores.
 */
bool mtcopy_use_nontemporal(const struct ferry_batch *batch)
{
	unsigned long when = READ_ONCE(mtcopy_tuning.nontemporal);

	return copy_page_nontemporal_possible() &&
	       (when == MTCOPY_ALWAYS ||
		(when == MTCOPY_AUTO && batch->reason == MR_DEMOTION &&
		 mtcopy_nontemporal_faster));
}

static u64 mtcopy_time(struct page *dst, struct page *src, bool nontemporal)
{
	unsigned int i, nr = 1 << MTCOPY_CALIBRATION_ORDER;
	u64 start = ktime_get_ns();

	for (i = 0; i < nr; i++)
		mtcopy_page(dst + i, src + i, nontemporal);
	if (nontemporal)
		copy_nontemporal_drain();
	return ktime_get_ns() - start;
}

static struct page *mtcopy_calibration_pages(void)
{
	return alloc_pages(GFP_KERNEL | __GFP_ZERO | __GFP_NORETRY |
			   __GFP_NOWARN, MTCOPY_CALIBRATION_ORDER);
}

/**
 * mtcopy_calibrate() - measure whether non-temporal stores are faster
 *
 * Compares the least of a few times of each kind, because a disturbance only
 * makes a run longer. If memory is too fragmented to measure, auto stores
 * through the cache, as migration does without mtcopy.
 *
 * Context: process context. Allocates memory for the time of the measurement.
 */
void mtcopy_calibrate(void)
{
	u64 cached = U64_MAX, nontemporal = U64_MAX;
	struct page *src, *dst;
	unsigned int i;

	if (!copy_page_nontemporal_possible())
		return;
	src = mtcopy_calibration_pages();
	dst = mtcopy_calibration_pages();
	if (!src || !dst)
		goto free;
	for (i = 0; i < MTCOPY_CALIBRATION_RUNS; i++) {
		cached = min(cached, mtcopy_time(dst, src, false));
		nontemporal = min(nontemporal, mtcopy_time(dst, src, true));
		cond_resched();
	}
	mtcopy_nontemporal_faster = nontemporal < cached;
	pr_info("ferry: mtcopy: 2^%d pages: %llu ns, non-temporal %llu ns\n",
		MTCOPY_CALIBRATION_ORDER, cached, nontemporal);
free:
	if (src)
		__free_pages(src, MTCOPY_CALIBRATION_ORDER);
	if (dst)
		__free_pages(dst, MTCOPY_CALIBRATION_ORDER);
}
