// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Mapping a share for a device
 *
 * Behind an IOMMU that translates, each channel has two windows of bus addresses, one for
 * sources and one for destinations, from the time it is held: a share is linked into them from
 * their beginning, and unlinked again. So no bus addresses are allocated for a batch, none are
 * freed, and their space cannot get fragmented, however long this goes on. In its window a share
 * is one stretch, wherever its folios lie, and the descriptors can be as long as engines like.
 *
 * Without one, a share is mapped by one call a direction; where sources and destinations both
 * adjoin on the bus, one descriptor copies several pieces.
 *
 * An IOMMU may need memory for its page tables, which it allocates without waiting. When that
 * fails the share is left to the CPU.
 *
 * Lock order: none are taken.
 */

#include <linux/dma-mapping.h>
#include <linux/error-injection.h>
#include <linux/iommu.h>
#include <linux/mm.h>

#include "internal.h"

#ifdef CONFIG_IOMMU_DMA
/* Pieces are pages: an IOMMU with larger ones would reveal their neighbours. */
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
 * dcbm_windows_alloc() - have windows for a channel, if its device is behind an IOMMU
 * @ch: the channel
 *
 * Context: process context.
 */
void dcbm_windows_alloc(struct dcbm_channel *ch)
{
	if (!dcbm_maps_pages(ch->dev) ||
	    !dma_iova_try_alloc(ch->dev, &ch->src_window, 0, DCBM_MAX_SHARE))
		return;
	ch->windows = dma_iova_try_alloc(ch->dev, &ch->dst_window, 0, DCBM_MAX_SHARE);
	if (!ch->windows)
		dma_iova_free(ch->dev, &ch->src_window);
}

/**
 * dcbm_windows_free() - give the windows back
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

/* Bytes of the pieces that adjoin in memory, from @sg on; at least of one. */
static size_t dcbm_stretch(struct scatterlist *sg, const struct scatterlist *end)
{
	phys_addr_t phys = sg_phys(sg);
	size_t len = 0;

	for (; sg < end && sg_phys(sg) == phys + len; sg++)
		len += sg->length;
	return len;
}

/* Link the pieces into a window, one behind the other. */
static int dcbm_link(struct device *dev, struct dma_iova_state *window, struct scatterlist *sg,
		     unsigned int nr, enum dma_data_direction dir)
{
	const struct scatterlist *end = sg + nr;
	size_t len, linked = 0;
	int err = 0;

	while (!err && sg < end) {
		len = dcbm_stretch(sg, end);
		err = dma_iova_link(dev, window, sg_phys(sg), linked, len, dir, 0);
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

static int dcbm_link_share(struct dcbm_share *share, struct dcbm_channel *ch)
{
	int err = dcbm_link(ch->dev, &ch->src_window, share->src, share->nr_pieces,
			    DMA_TO_DEVICE);

	if (err)
		return err;
	err = dcbm_link(ch->dev, &ch->dst_window, share->dst, share->nr_pieces,
			DMA_FROM_DEVICE);
	if (err)
		dma_iova_unlink(ch->dev, &ch->src_window, 0, share->bytes, DMA_TO_DEVICE, 0);
	return err;
}

static int dcbm_map_share(struct dcbm_share *share, struct dcbm_channel *ch)
{
	if (!dma_map_sg(ch->dev, share->src, share->nr_pieces, DMA_TO_DEVICE))
		return -EIO;
	if (!dma_map_sg(ch->dev, share->dst, share->nr_pieces, DMA_FROM_DEVICE)) {
		dma_unmap_sg(ch->dev, share->src, share->nr_pieces, DMA_TO_DEVICE);
		return -EIO;
	}
	return 0;
}

/* Where the mapped list, or the window if there is one, has been read up to. */
struct dcbm_cursor {
	struct scatterlist *sg;
	unsigned int used;
	dma_addr_t window;
};

/* The bus address of the next @len bytes, which never straddle a mapped entry. */
static dma_addr_t dcbm_take(struct dcbm_cursor *cursor, unsigned int len)
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

static bool dcbm_adjoins(const struct dcbm_desc *desc, dma_addr_t src, dma_addr_t dst,
			 unsigned int len)
{
	return desc->src + desc->len == src && desc->dst + desc->len == dst &&
	       desc->len + len <= DCBM_MAX_LEN;
}

static void dcbm_describe(struct dcbm_share *share, struct dcbm_channel *ch)
{
	struct dcbm_cursor src = { .sg = share->src }, dst = { .sg = share->dst };
	struct dcbm_desc *desc = NULL;
	unsigned int i;

	if (ch->windows) {
		src = (struct dcbm_cursor) { .window = ch->src_window.addr };
		dst = (struct dcbm_cursor) { .window = ch->dst_window.addr };
	}
	for (i = 0; i < share->nr_pieces; i++) {
		unsigned int len = share->src[i].length;
		dma_addr_t from = dcbm_take(&src, len), to = dcbm_take(&dst, len);

		if (desc && dcbm_adjoins(desc, from, to, len)) {
			desc->len += len;
			desc->nr++;
			continue;
		}
		desc = &share->descs[share->nr_descs++];
		*desc = (struct dcbm_desc) {
			.ch = ch, .src = from, .dst = to, .len = len,
			.first = i, .nr = 1, .status = -EAGAIN,
		};
	}
}

/**
 * dcbm_map() - map a share for a channel's device and describe its copies
 * @share:	the share, cut
 * @ch:		the channel
 *
 * Context: process context.
 * Return: 0, or a negative errno with nothing mapped.
 */
noinline int dcbm_map(struct dcbm_share *share, struct dcbm_channel *ch)
{
	int err = ch->windows ? dcbm_link_share(share, ch) : dcbm_map_share(share, ch);

	if (err)
		return err;
	share->mapped = true;
	dcbm_describe(share, ch);
	return 0;
}
ALLOW_ERROR_INJECTION(dcbm_map, ERRNO);

/**
 * dcbm_unmap() - undo dcbm_map()
 * @share:	the share
 * @ch:		its channel
 * @attrs:	DMA_ATTR_SKIP_CPU_SYNC once the folios may have other contents by right
 *
 * Context: any; the device has ended with the share, as its driver says.
 */
void dcbm_unmap(struct dcbm_share *share, struct dcbm_channel *ch, unsigned long attrs)
{
	if (!share->mapped)
		return;
	if (ch->windows) {
		dma_iova_unlink(ch->dev, &ch->src_window, 0, share->bytes, DMA_TO_DEVICE, attrs);
		dma_iova_unlink(ch->dev, &ch->dst_window, 0, share->bytes, DMA_FROM_DEVICE, attrs);
	} else {
		dma_unmap_sg_attrs(ch->dev, share->src, share->nr_pieces, DMA_TO_DEVICE, attrs);
		dma_unmap_sg_attrs(ch->dev, share->dst, share->nr_pieces, DMA_FROM_DEVICE, attrs);
	}
	share->mapped = false;
}
