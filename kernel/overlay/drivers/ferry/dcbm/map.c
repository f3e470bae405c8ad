// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Transfers and their mapping
 *
 * A transfer is a contiguous part of a batch, seen as one run of bytes: several
 * small folios, or a part of a large one. Neighbours that are contiguous in
 * memory stay neighbours. All memory that a transfer needs was allocated with
 * its channel.
 *
 * Behind an IOMMU that translates, each transfer has two windows of bus
 * addresses (IOVA) for as long as its channel is held, one for sources and one
 * for destinations. Its segments are linked into the beginning of them and
 * unlinked again. So a batch neither allocates nor frees IOVA, and the IOVA
 * space cannot fragment, however long this goes on. In its window a transfer is
 * contiguous wherever its folios lie, and the descriptors can be as long as
 * engines accept.
 *
 * Without windows, one call for each direction maps a transfer; where sources
 * and destinations are both contiguous on the bus, one descriptor copies
 * several segments.
 *
 * An IOMMU may need memory for its page tables, which it allocates without
 * waiting. If that fails the CPU copies the transfer, the engine gets no more
 * of the batch, and rests.
 */

#include <kunit/static_stub.h>
#include <linux/dma-mapping.h>
#include <linux/error-injection.h>
#include <linux/iommu.h>
#include <linux/mm.h>
#include <linux/pci.h>

#include "internal.h"

static void dcbm_add_segment(struct dcbm_transfer *transfer,
			     const struct ferry_batch *batch,
			     unsigned int index, size_t offset, size_t len)
{
	const struct ferry_pair *pair = &batch->pairs[index];
	unsigned int nr = transfer->nr_segments++;
	unsigned long page = offset / PAGE_SIZE;

	transfer->pair[nr] = index;
	sg_set_page(&transfer->src[nr], folio_page(pair->src, page), len, 0);
	sg_set_page(&transfer->dst[nr], folio_page(pair->dst, page), len, 0);
}

/* The pair that a byte of the batch belongs to. */
static unsigned int dcbm_pair_at(const struct ferry_batch *batch, size_t offset)
{
	unsigned int low = 0, high = batch->nr, middle;

	while (high - low > 1) {
		middle = (low + high) / 2;
		if (batch->pairs[middle].offset <= offset)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/**
 * dcbm_fill() - give a transfer a part of a batch
 * @transfer:	the transfer, not busy
 * @batch:	the batch
 * @start:	offset of the part in the batch
 * @bytes:	its length, up to DCBM_MAX_TRANSFER
 *
 * Context: any.
 */
void dcbm_fill(struct dcbm_transfer *transfer, const struct ferry_batch *batch,
	       size_t start, size_t bytes)
{
	size_t max_len = dma_get_max_seg_size(transfer->ch->dev);
	unsigned int i = dcbm_pair_at(batch, start), max;
	size_t end = start + bytes, offset, len;

	max_len = clamp(round_down(max_len, PAGE_SIZE), PAGE_SIZE,
			DCBM_MAX_LEN);
	/* One for each folio, and one for each cut of a folio. */
	max = dcbm_pair_at(batch, end - 1) - i + 1 + bytes / max_len;
	max = min(max, DCBM_MAX_SEGMENTS);
	transfer->bytes = bytes;
	transfer->nr_segments = 0;
	transfer->nr_descs = 0;
	sg_init_table(transfer->src, max);
	sg_init_table(transfer->dst, max);
	for (; start < end; i++) {
		const struct ferry_pair *pair = &batch->pairs[i];
		size_t pair_end = pair->offset + folio_size(pair->src);

		for (; start < min(end, pair_end); start += len) {
			offset = start - pair->offset;
			len = min3(pair_end - start, end - start, max_len);
			dcbm_add_segment(transfer, batch, i, offset, len);
		}
	}
	sg_mark_end(&transfer->src[transfer->nr_segments - 1]);
	sg_mark_end(&transfer->dst[transfer->nr_segments - 1]);
}

/**
 * dcbm_bounces() - may the DMA layer use bounce buffers for a device?
 * @dev: device that memory is mapped for
 *
 * It may if the device cannot address all memory, or if the guest's memory is
 * encrypted. dcbm does not use such a device. The CPU would copy each folio
 * twice, into a buffer and out of another. And the unmapping returns the
 * buffers, to which a device that completed too early may still write when they
 * have their next user: hung.c keeps the pages of such a write, and cannot keep
 * buffers.
 *
 * If it may, it limits the size of a mapping to that of a buffer. The answer
 * may change from no to yes when memory is added that the device cannot
 * address.
 *
 * Context: any.
 */
bool dcbm_bounces(struct device *dev)
{
	return dma_max_mapping_size(dev) != SIZE_MAX;
}

/**
 * dcbm_windows_alloc() - allocate a transfer's windows, if it needs them
 * @transfer: the transfer
 *
 * Without windows, because no IOMMU translates or because IOVA is short,
 * dcbm_map() uses scatterlists.
 *
 * Context: process context.
 */
void dcbm_windows_alloc(struct dcbm_transfer *transfer)
{
	struct device *dev = transfer->ch->dev;
	const struct iommu_domain *domain = iommu_get_domain_for_dev(dev);

	/*
	 * Segments are pages: an IOMMU with larger pages would give the device
	 * access to their neighbours.
	 */
	if (!domain || !(domain->pgsize_bitmap & (2 * PAGE_SIZE - 1)) ||
	    !dma_iova_try_alloc(dev, &transfer->src_window, 0,
				DCBM_MAX_TRANSFER))
		return;
	transfer->windows = dma_iova_try_alloc(dev, &transfer->dst_window, 0,
					       DCBM_MAX_TRANSFER);
	if (!transfer->windows)
		dma_iova_free(dev, &transfer->src_window);
}

/**
 * dcbm_windows_free() - free a transfer's windows
 * @transfer: the transfer, not mapped
 *
 * Context: process context.
 */
void dcbm_windows_free(struct dcbm_transfer *transfer)
{
	struct device *dev = transfer->ch->dev;

	if (!transfer->windows)
		return;
	dma_iova_free(dev, &transfer->src_window);
	dma_iova_free(dev, &transfer->dst_window);
}

/* Link the segments into a window, one after the other. */
static int dcbm_link(struct device *dev, struct dma_iova_state *window,
		     struct scatterlist *list, unsigned int nr,
		     enum dma_data_direction dir)
{
	struct scatterlist *sg = list, *end = list + nr;
	size_t len, linked = 0;
	int err = 0;

	for (; sg < end; linked += len) {
		phys_addr_t phys = sg_phys(sg);

		/* Together what is contiguous in memory. */
		for (len = 0; sg < end && sg_phys(sg) == phys + len; sg++)
			len += sg->length;
		err = dma_iova_link(dev, window, phys, linked, len, dir, 0);
		if (err)
			break;
	}
	if (!err)
		err = dma_iova_sync(dev, window, 0, linked);
	if (err && linked)
		dma_iova_unlink(dev, window, 0, linked, dir, 0);
	/*
	 * One segment to the device. There are windows with CONFIG_IOMMU_DMA
	 * only, with which the length for CPUs is another field.
	 */
	sg_dma_address(list) = window->addr;
	sg_dma_len(list) = linked;
	return err;
}

static int dcbm_map_side(struct dcbm_transfer *transfer, struct scatterlist *sg,
			 struct dma_iova_state *window,
			 enum dma_data_direction dir)
{
	struct device *dev = transfer->ch->dev;

	if (transfer->windows)
		return dcbm_link(dev, window, sg, transfer->nr_segments, dir);
	return dma_map_sg(dev, sg, transfer->nr_segments, dir) ? 0 : -EIO;
}

static void dcbm_unmap_side(struct dcbm_transfer *transfer,
			    struct scatterlist *sg,
			    struct dma_iova_state *window,
			    enum dma_data_direction dir, unsigned long attrs)
{
	struct device *dev = transfer->ch->dev;

	if (transfer->windows)
		dma_iova_unlink(dev, window, 0, transfer->bytes, dir, attrs);
	else
		dma_unmap_sg_attrs(dev, sg, transfer->nr_segments, dir, attrs);
}

/* Read position in a mapped list. */
struct dcbm_cursor {
	struct scatterlist *sg;
	unsigned int used;
};

/* Bus address of the next @len bytes, which never cross a mapped entry. */
static dma_addr_t dcbm_next_addr(struct dcbm_cursor *cursor, unsigned int len)
{
	dma_addr_t addr = sg_dma_address(cursor->sg) + cursor->used;

	cursor->used += len;
	if (cursor->used == sg_dma_len(cursor->sg)) {
		cursor->sg = sg_next(cursor->sg);
		cursor->used = 0;
	}
	return addr;
}

static void dcbm_build_descs(struct dcbm_transfer *transfer)
{
	struct dcbm_cursor src = { .sg = transfer->src };
	struct dcbm_cursor dst = { .sg = transfer->dst };
	size_t max_len = transfer->ch->quirks->max_len ?: DCBM_MAX_LEN;
	struct dcbm_desc *desc = NULL;
	unsigned int i;

	for (i = 0; i < transfer->nr_segments; i++) {
		unsigned int len = transfer->src[i].length;
		dma_addr_t from = dcbm_next_addr(&src, len);
		dma_addr_t to = dcbm_next_addr(&dst, len);

		/* Extend the last descriptor if both sides are contiguous. */
		if (desc && desc->src + desc->len == from &&
		    desc->dst + desc->len == to &&
		    desc->len + len <= max_len) {
			desc->len += len;
			desc->nr++;
			continue;
		}
		desc = &transfer->descs[transfer->nr_descs++];
		*desc = (struct dcbm_desc) {
			.transfer = transfer, .src = from, .dst = to,
			.len = len, .first = i, .nr = 1, .status = -EAGAIN,
		};
	}
}

/**
 * dcbm_map() - map a transfer for its channel's device and build descriptors
 * @transfer: the transfer, from dcbm_fill()
 *
 * Context: process context.
 * Return: 0, or a negative errno with nothing mapped.
 */
noinline int dcbm_map(struct dcbm_transfer *transfer)
{
	int err;

	KUNIT_STATIC_STUB_REDIRECT(dcbm_map, transfer);
	/* Memory may have been added since the channel was requested. */
	if (dcbm_bounces(transfer->ch->dev))
		return -EIO;
	err = dcbm_map_side(transfer, transfer->src, &transfer->src_window,
			    DMA_TO_DEVICE);
	if (err)
		return err;
	err = dcbm_map_side(transfer, transfer->dst, &transfer->dst_window,
			    DMA_FROM_DEVICE);
	if (err) {
		dcbm_unmap_side(transfer, transfer->src, &transfer->src_window,
				DMA_TO_DEVICE, 0);
		return err;
	}
	transfer->mapped = true;
	dcbm_build_descs(transfer);
	return 0;
}
ALLOW_ERROR_INJECTION(dcbm_map, ERRNO);

/**
 * dcbm_unmap() - undo dcbm_map()
 * @transfer:	the transfer
 * @attrs:	DMA_ATTR_SKIP_CPU_SYNC if the CPU may have written the folios
 *		since the copy
 *
 * Context: any; the device has finished the transfer, as its driver says.
 */
void dcbm_unmap(struct dcbm_transfer *transfer, unsigned long attrs)
{
	if (!transfer->mapped)
		return;
	dcbm_unmap_side(transfer, transfer->src, &transfer->src_window,
			DMA_TO_DEVICE, attrs);
	dcbm_unmap_side(transfer, transfer->dst, &transfer->dst_window,
			DMA_FROM_DEVICE, attrs);
	transfer->mapped = false;
}

/**
 * dcbm_unmap_hung() - unmap a transfer that its device may still write
 * @transfer: the transfer of a channel whose driver is being unbound
 *
 * Unlinking from a window waits until the IOMMU has forgotten the translations
 * and has completed the writes that had used them, even if the IOMMU is lazy
 * otherwise. The window itself is leaked: a device that is not reset may still
 * write there after its driver is bound again, and must not find a later
 * mapping. For the same reason a transfer without a window stays mapped behind
 * an IOMMU. Without an IOMMU an unmapping has no effect on the device.
 *
 * Context: process context.
 * Return: true if the device cannot write the transfer any more.
 */
bool dcbm_unmap_hung(struct dcbm_transfer *transfer)
{
	struct device *dev = transfer->ch->dev;
	const struct iommu_domain *domain = iommu_get_domain_for_dev(dev);
	bool translated = domain && domain->type != IOMMU_DOMAIN_IDENTITY;

	if (transfer->windows || !translated)
		dcbm_unmap(transfer, DMA_ATTR_SKIP_CPU_SYNC);
	/* By ATS a device may use translations that it has cached. */
	return transfer->windows &&
	       !(dev_is_pci(dev) && to_pci_dev(dev)->ats_enabled);
}
