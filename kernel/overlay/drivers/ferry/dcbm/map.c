// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Splitting a batch into transfers and mapping them
 *
 * A batch is one sequence of bytes. Each channel gets an equal, contiguous part
 * of it, split at page boundaries, so that all channels work even on one large
 * folio, and neighbours that are contiguous in memory stay neighbours. All
 * memory that a transfer needs was allocated with its channel. A batch with
 * more bytes or segments than its channels have room for is copied in several
 * rounds.
 *
 * Behind an IOMMU that translates, each channel has two windows of bus
 * addresses (IOVA) for as long as it is held, one for sources and one for
 * destinations. A transfer is linked into the beginning of them and unlinked
 * again. So a batch neither allocates nor frees IOVA, and the IOVA space cannot
 * fragment, however long this goes on. In its window a transfer is contiguous
 * wherever its folios lie, and the descriptors can be as long as engines
 * accept.
 *
 * Without windows, one call for each direction maps a transfer; where sources
 * and destinations are both contiguous on the bus, one descriptor copies
 * several segments.
 *
 * An IOMMU may need memory for its page tables, which it allocates without
 * waiting. If that fails the CPU copies the transfer.
 */

#include <linux/dma-mapping.h>
#include <linux/error-injection.h>
#include <linux/iommu.h>
#include <linux/mm.h>

#include "internal.h"

static void dcbm_add_segment(struct dcbm_transfer *transfer,
			     struct dcbm_job *job, size_t len)
{
	struct ferry_pair *pair = &job->batch->pairs[job->pair];
	unsigned int nr = transfer->nr_segments++;
	unsigned long page = job->offset / PAGE_SIZE;

	transfer->pair[nr] = job->pair;
	sg_set_page(&transfer->src[nr], folio_page(pair->src, page), len, 0);
	sg_set_page(&transfer->dst[nr], folio_page(pair->dst, page), len, 0);
	transfer->bytes += len;
	job->offset += len;
	if (job->offset == folio_size(pair->src)) {
		job->offset = 0;
		job->pair++;
	}
}

/* Fill a transfer with the next @want bytes, or as many as it has room for. */
static void dcbm_split_transfer(struct dcbm_job *job,
				struct dcbm_transfer *transfer, size_t want,
				unsigned int max_len)
{
	/*
	 * One segment for each folio, one for each split within a folio, and
	 * the end. More entries need no clearing.
	 */
	unsigned int max = min(job->batch->nr - job->pair + want / max_len + 1,
			       DCBM_MAX_SEGMENTS);

	transfer->bytes = 0;
	transfer->nr_segments = 0;
	transfer->nr_descs = 0;
	sg_init_table(transfer->src, max);
	sg_init_table(transfer->dst, max);
	while (transfer->bytes < want && job->pair < job->batch->nr &&
	       transfer->nr_segments < max) {
		struct folio *src = job->batch->pairs[job->pair].src;

		dcbm_add_segment(transfer, job,
				 min3(folio_size(src) - job->offset,
				      want - transfer->bytes, (size_t)max_len));
	}
	if (transfer->nr_segments) {
		sg_mark_end(&transfer->src[transfer->nr_segments - 1]);
		sg_mark_end(&transfer->dst[transfer->nr_segments - 1]);
	}
}

static size_t dcbm_bytes_left(const struct dcbm_job *job)
{
	const struct ferry_batch *batch = job->batch;

	if (job->pair == batch->nr)
		return 0;
	return batch->bytes - batch->pairs[job->pair].offset - job->offset;
}

/**
 * dcbm_split() - split the rest of a batch into a transfer for each channel
 * @job: the job
 *
 * Context: any; the channels are claimed.
 * Return: false if no byte or no channel is left.
 */
bool dcbm_split(struct dcbm_job *job)
{
	size_t want = 0;
	unsigned int i;

	if (job->nr)
		want = round_up(DIV_ROUND_UP(dcbm_bytes_left(job), job->nr),
				PAGE_SIZE);
	want = min(want, DCBM_MAX_TRANSFER);
	if (!want)
		return false;
	for (i = 0; i < job->nr; i++) {
		struct device *dev = job->ch[i]->dev;
		size_t max_len = min(dma_get_max_seg_size(dev),
				     dma_max_mapping_size(dev));

		max_len = clamp(round_down(max_len, PAGE_SIZE), PAGE_SIZE,
				DCBM_MAX_LEN);
		dcbm_split_transfer(job, &job->ch[i]->transfer, want, max_len);
	}
	return true;
}

#ifdef CONFIG_IOMMU_DMA
/*
 * Segments are pages: an IOMMU with larger pages would give the device access
 * to their neighbours.
 */
static bool dcbm_maps_pages(struct device *dev)
{
	const struct iommu_domain *domain = iommu_get_domain_for_dev(dev);

	return domain && domain->pgsize_bitmap & (2 * PAGE_SIZE - 1);
}
#else
static bool dcbm_maps_pages(struct device *dev)
{
	return false;
}
#endif

/**
 * dcbm_windows_alloc() - allocate a channel's windows, if it needs them
 * @ch: the channel
 *
 * Without windows, because no IOMMU translates or because IOVA is short,
 * dcbm_map() uses scatterlists.
 *
 * Context: process context.
 */
void dcbm_windows_alloc(struct dcbm_channel *ch)
{
	if (!dcbm_maps_pages(ch->dev) ||
	    !dma_iova_try_alloc(ch->dev, &ch->src_window, 0, DCBM_MAX_TRANSFER))
		return;
	ch->windows = dma_iova_try_alloc(ch->dev, &ch->dst_window, 0,
					 DCBM_MAX_TRANSFER);
	if (!ch->windows)
		dma_iova_free(ch->dev, &ch->src_window);
}

/**
 * dcbm_windows_free() - free a channel's windows
 * @ch: the channel; nothing is mapped
 *
 * Context: process context.
 */
void dcbm_windows_free(struct dcbm_channel *ch)
{
	if (!ch->windows)
		return;
	dma_iova_free(ch->dev, &ch->src_window);
	dma_iova_free(ch->dev, &ch->dst_window);
}

/* Bytes of the segments that are contiguous in memory, from @sg on. */
static size_t dcbm_contiguous_len(struct scatterlist *sg,
				  const struct scatterlist *end)
{
	phys_addr_t phys = sg_phys(sg);
	size_t len = 0;

	for (; sg < end && sg_phys(sg) == phys + len; sg++)
		len += sg->length;
	return len;
}

/* Link the segments into a window, one after the other. */
static int dcbm_link(struct device *dev, struct dma_iova_state *window,
		     struct scatterlist *sg, unsigned int nr,
		     enum dma_data_direction dir)
{
	const struct scatterlist *end = sg + nr;
	size_t len, linked = 0;
	int err = 0;

	while (!err && sg < end) {
		len = dcbm_contiguous_len(sg, end);
		err = dma_iova_link(dev, window, sg_phys(sg), linked, len,
				    dir, 0);
		if (err)
			break;
		linked += len;
		while (len) {
			len -= sg->length;
			sg++;
		}
	}
	if (!err)
		err = dma_iova_sync(dev, window, 0, linked);
	if (err && linked)
		dma_iova_unlink(dev, window, 0, linked, dir, 0);
	return err;
}

static int dcbm_map_windows(struct dcbm_transfer *transfer,
			    struct dcbm_channel *ch)
{
	int err;

	err = dcbm_link(ch->dev, &ch->src_window, transfer->src,
			transfer->nr_segments, DMA_TO_DEVICE);
	if (err)
		return err;
	err = dcbm_link(ch->dev, &ch->dst_window, transfer->dst,
			transfer->nr_segments, DMA_FROM_DEVICE);
	if (err)
		dma_iova_unlink(ch->dev, &ch->src_window, 0, transfer->bytes,
				DMA_TO_DEVICE, 0);
	return err;
}

static int dcbm_map_lists(struct dcbm_transfer *transfer,
			  struct dcbm_channel *ch)
{
	unsigned int nr = transfer->nr_segments;

	if (!dma_map_sg(ch->dev, transfer->src, nr, DMA_TO_DEVICE))
		return -EIO;
	if (!dma_map_sg(ch->dev, transfer->dst, nr, DMA_FROM_DEVICE)) {
		dma_unmap_sg(ch->dev, transfer->src, nr, DMA_TO_DEVICE);
		return -EIO;
	}
	return 0;
}

/* Read position in a mapped list, or in the window if @sg is NULL. */
struct dcbm_cursor {
	struct scatterlist *sg;
	unsigned int used;
	dma_addr_t window;
};

/* Bus address of the next @len bytes, which never cross a mapped entry. */
static dma_addr_t dcbm_next_addr(struct dcbm_cursor *cursor, unsigned int len)
{
	dma_addr_t addr = cursor->window;

	if (!cursor->sg) {
		cursor->window += len;
		return addr;
	}
	addr = sg_dma_address(cursor->sg) + cursor->used;
	cursor->used += len;
	if (cursor->used == sg_dma_len(cursor->sg)) {
		cursor->sg = sg_next(cursor->sg);
		cursor->used = 0;
	}
	return addr;
}

static void dcbm_build_descs(struct dcbm_transfer *transfer,
			     struct dcbm_channel *ch)
{
	struct dcbm_cursor src = { .sg = transfer->src };
	struct dcbm_cursor dst = { .sg = transfer->dst };
	struct dcbm_desc *desc = NULL;
	unsigned int i;

	if (ch->windows) {
		src = (struct dcbm_cursor){ .window = ch->src_window.addr };
		dst = (struct dcbm_cursor){ .window = ch->dst_window.addr };
	}
	for (i = 0; i < transfer->nr_segments; i++) {
		unsigned int len = transfer->src[i].length;
		dma_addr_t from = dcbm_next_addr(&src, len);
		dma_addr_t to = dcbm_next_addr(&dst, len);

		/* Extend the last descriptor if both sides are contiguous. */
		if (desc && desc->src + desc->len == from &&
		    desc->dst + desc->len == to &&
		    desc->len + len <= DCBM_MAX_LEN) {
			desc->len += len;
			desc->nr++;
			continue;
		}
		desc = &transfer->descs[transfer->nr_descs++];
		*desc = (struct dcbm_desc) {
			.ch = ch, .src = from, .dst = to, .len = len,
			.first = i, .nr = 1, .status = -EAGAIN,
		};
	}
}

/**
 * dcbm_map() - map a transfer for a channel's device and build its descriptors
 * @transfer:	the transfer, from dcbm_split()
 * @ch:		the channel
 *
 * Context: process context.
 * Return: 0, or a negative errno with nothing mapped.
 */
noinline int dcbm_map(struct dcbm_transfer *transfer, struct dcbm_channel *ch)
{
	int err = ch->windows ? dcbm_map_windows(transfer, ch) :
				dcbm_map_lists(transfer, ch);

	if (err)
		return err;
	transfer->mapped = true;
	dcbm_build_descs(transfer, ch);
	return 0;
}
ALLOW_ERROR_INJECTION(dcbm_map, ERRNO);

/**
 * dcbm_unmap() - undo dcbm_map()
 * @transfer:	the transfer
 * @ch:		its channel
 * @attrs:	DMA_ATTR_SKIP_CPU_SYNC if the CPU may have written the folios
 *		since the copy
 *
 * Context: any; the device has finished the transfer, as its driver says.
 */
void dcbm_unmap(struct dcbm_transfer *transfer, struct dcbm_channel *ch,
		unsigned long attrs)
{
	unsigned int nr = transfer->nr_segments;

	if (!transfer->mapped)
		return;
	if (ch->windows) {
		dma_iova_unlink(ch->dev, &ch->src_window, 0, transfer->bytes,
				DMA_TO_DEVICE, attrs);
		dma_iova_unlink(ch->dev, &ch->dst_window, 0, transfer->bytes,
				DMA_FROM_DEVICE, attrs);
	} else {
		dma_unmap_sg_attrs(ch->dev, transfer->src, nr, DMA_TO_DEVICE,
				   attrs);
		dma_unmap_sg_attrs(ch->dev, transfer->dst, nr, DMA_FROM_DEVICE,
				   attrs);
	}
	transfer->mapped = false;
}
