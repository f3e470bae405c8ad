// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: What mtcopy copies at a time, and how
 *
 * A batch is one run of bytes, folio after folio, and a chunk a fixed stretch of it: several
 * small folios, or a part of a large one. Whoever claims chunks claims ascending ones, so a
 * cursor that only moves forward finds the folio of a chunk.
 *
 * A page whose source is poisoned fails its folio, by the pair's status, and no other. Any
 * number of CPUs may write that status; all write the same value.
 *
 * Lock order: none are taken.
 */

#include <linux/ferry.h>
#include <linux/gfp.h>
#include <linux/highmem.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/sizes.h>

#include "mtcopy.h"
#include "stream.h"

/*
 * Helpers copy a chunk with preemption off: at 10 GB/s for 7 us, and on a machine that
 * copies 1 GB/s for less than a tick. Claiming one is an atomic operation, 0.1 us.
 */
#define MTCOPY_CHUNK		SZ_64K

/* A folio large enough to outgrow most caches, small enough to be had at boot. */
#define MTCOPY_CALIBRATION_ORDER	min(MAX_PAGE_ORDER, 9)
#define MTCOPY_CALIBRATION_RUNS		5

/* Did streaming stores win the calibration? */
static bool mtcopy_streaming_faster;

static int mtcopy_stream_page(struct page *dst, struct page *src)
{
	if (!ferry_stream_page(page_address(dst), page_address(src)))
		return 0;
	memory_failure_queue(page_to_pfn(src), 0);
	return -EHWPOISON;
}

static int mtcopy_page(struct page *dst, struct page *src, bool streaming)
{
	if (FERRY_HAS_STREAM && streaming)
		return mtcopy_stream_page(dst, src);
	return copy_mc_highpage(dst, src) ? -EHWPOISON : 0;
}

/* Copy the pages of @pair between the batch offsets @start and @end. */
static void mtcopy_stretch(struct ferry_pair *pair, size_t start, size_t end,
			   bool streaming)
{
	size_t i = (start - pair->offset) >> PAGE_SHIFT;
	size_t last = (end - pair->offset) >> PAGE_SHIFT;

	/* A folio that has failed is not read on: each poisoned page is a machine check. */
	for (; i < last && !READ_ONCE(pair->status); i++)
		if (mtcopy_page(folio_page(pair->dst, i),
				folio_page(pair->src, i), streaming))
			WRITE_ONCE(pair->status, -EHWPOISON);
}

/**
 * mtcopy_nr_chunks() - chunks of a batch
 * @batch: the batch
 *
 * Return: their number; the last may be short.
 */
unsigned int mtcopy_nr_chunks(const struct ferry_batch *batch)
{
	return DIV_ROUND_UP(batch->bytes, MTCOPY_CHUNK);
}

/**
 * mtcopy_chunk() - copy one chunk
 * @batch:	the batch
 * @chunk:	number of the chunk
 * @cursor:	a pair not behind the chunk's first; moved to its last
 * @streaming:	use streaming stores
 *
 * The stores are complete, for whoever synchronises with this CPU, on return.
 *
 * Context: any, all folios locked.
 */
void mtcopy_chunk(struct ferry_batch *batch, unsigned int chunk,
		  unsigned int *cursor, bool streaming)
{
	size_t start = (size_t)chunk * MTCOPY_CHUNK;
	size_t end = min(start + MTCOPY_CHUNK, batch->bytes);

	while (start < end) {
		struct ferry_pair *pair = &batch->pairs[*cursor];
		size_t pair_end = pair->offset + folio_size(pair->src);

		if (start < pair_end) {
			mtcopy_stretch(pair, start, min(end, pair_end), streaming);
			start = min(end, pair_end);
		}
		if (start < end)
			++*cursor;
	}
	if (streaming)
		ferry_stream_drain();
}

/**
 * mtcopy_streams() - shall this batch be stored past the cache?
 * @batch: the batch
 *
 * With stores set to auto: when nobody is about to read the destination, which is so for
 * demotion, and streaming was measured to be the faster on this machine.
 *
 * Context: any.
 * Return: true if so.
 */
bool mtcopy_streams(const struct ferry_batch *batch)
{
	if (!FERRY_HAS_STREAM)
		return false;
	switch (READ_ONCE(mtcopy_tuning.stores)) {
	case MTCOPY_CACHED:
		return false;
	case MTCOPY_STREAMING:
		return true;
	default:
		return batch->reason == MR_DEMOTION && mtcopy_streaming_faster;
	}
}

static u64 mtcopy_time(struct page *dst, struct page *src, bool streaming)
{
	unsigned int i, nr = 1 << MTCOPY_CALIBRATION_ORDER;
	u64 start = ktime_get_ns();

	for (i = 0; i < nr; i++)
		mtcopy_page(dst + i, src + i, streaming);
	if (streaming)
		ferry_stream_drain();
	return ktime_get_ns() - start;
}

/* The least of a few times: what disturbs a run only makes it longer. */
static void mtcopy_compare(struct page *dst, struct page *src)
{
	u64 cached = U64_MAX, streaming = U64_MAX;
	unsigned int i;

	for (i = 0; i < MTCOPY_CALIBRATION_RUNS; i++) {
		cached = min(cached, mtcopy_time(dst, src, false));
		streaming = min(streaming, mtcopy_time(dst, src, true));
		cond_resched();
	}
	mtcopy_streaming_faster = streaming < cached;
	pr_info("ferry: mtcopy: 2^%d pages copied in %llu ns cached, %llu ns streaming\n",
		MTCOPY_CALIBRATION_ORDER, cached, streaming);
}

static struct page *mtcopy_calibration_pages(void)
{
	return alloc_pages(GFP_KERNEL | __GFP_ZERO | __GFP_NORETRY | __GFP_NOWARN,
			   MTCOPY_CALIBRATION_ORDER);
}

/**
 * mtcopy_calibrate() - measure which stores are faster here
 *
 * Where memory is too fragmented to measure, auto stores through the cache, as migration
 * does without mtcopy.
 *
 * Context: process context. Allocates memory for the time of the measurement.
 */
void mtcopy_calibrate(void)
{
	struct page *src, *dst;

	if (!FERRY_HAS_STREAM)
		return;
	src = mtcopy_calibration_pages();
	dst = mtcopy_calibration_pages();
	if (src && dst)
		mtcopy_compare(dst, src);
	if (src)
		__free_pages(src, MTCOPY_CALIBRATION_ORDER);
	if (dst)
		__free_pages(dst, MTCOPY_CALIBRATION_ORDER);
}
