// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Cutting a batch into shares
 *
 * A batch is one run of bytes. Each channel gets an equal, contiguous part of it, cut at page
 * boundaries, so that all work even on one large folio, and neighbours that adjoin in memory
 * stay neighbours. A share is mapped for its channel's device by one call a direction; where
 * sources and destinations adjoin on the bus, one descriptor copies several pieces.
 *
 * What a share needs exists since its channel is held: nothing is allocated here. Mapping may
 * allocate page tables of an IOMMU, atomically; when that fails the share is left to the CPU.
 *
 * A batch with more pieces than its channels have room for is copied in several rounds.
 *
 * Lock order: none are taken.
 */

#include <linux/dma-mapping.h>
#include <linux/error-injection.h>
#include <linux/mm.h>

#include "dcbm.h"

/* Where the mapped list has been read up to. */
struct dcbm_cursor {
	struct scatterlist *sg;
	unsigned int used;
};

static void dcbm_add_piece(struct dcbm_share *share, struct dcbm_run *run, size_t len)
{
	struct ferry_pair *pair = &run->batch->pairs[run->pair];
	unsigned int nr = share->nr_pieces++;
	unsigned long page = run->offset / PAGE_SIZE;

	share->pair[nr] = run->pair;
	sg_set_page(&share->src[nr], folio_page(pair->src, page), len, 0);
	sg_set_page(&share->dst[nr], folio_page(pair->dst, page), len, 0);
	share->bytes += len;
	run->offset += len;
	if (run->offset == folio_size(pair->src)) {
		run->offset = 0;
		run->pair++;
	}
}

/* Fill a share with the next @want bytes of the batch, or as many as it has room for. */
static void dcbm_cut_share(struct dcbm_run *run, struct dcbm_share *share, size_t want,
			   unsigned int max_len)
{
	share->bytes = 0;
	share->nr_pieces = 0;
	share->nr_descs = 0;
	sg_init_table(share->src, DCBM_MAX_PIECES);
	sg_init_table(share->dst, DCBM_MAX_PIECES);
	while (share->bytes < want && run->pair < run->batch->nr &&
	       share->nr_pieces < DCBM_MAX_PIECES) {
		struct folio *src = run->batch->pairs[run->pair].src;

		dcbm_add_piece(share, run, min3(folio_size(src) - run->offset,
						want - share->bytes, (size_t)max_len));
	}
	if (share->nr_pieces) {
		sg_mark_end(&share->src[share->nr_pieces - 1]);
		sg_mark_end(&share->dst[share->nr_pieces - 1]);
	}
}

static size_t dcbm_left(const struct dcbm_run *run)
{
	const struct ferry_batch *batch = run->batch;

	if (run->pair == batch->nr)
		return 0;
	return batch->bytes - batch->pairs[run->pair].offset - run->offset;
}

/**
 * dcbm_cut() - give each channel of a run its share of what is left of the batch
 * @run: the run
 *
 * Context: any; the channels are claimed.
 * Return: false if nothing is left or no channel is.
 */
bool dcbm_cut(struct dcbm_run *run)
{
	size_t want = run->nr ? round_up(DIV_ROUND_UP(dcbm_left(run), run->nr), PAGE_SIZE) : 0;
	unsigned int i;

	for (i = 0; i < run->nr; i++) {
		unsigned int max_len = round_down(dma_get_max_seg_size(run->ch[i]->dev), PAGE_SIZE);

		dcbm_cut_share(run, &run->ch[i]->share, want,
			       clamp(max_len, PAGE_SIZE, DCBM_MAX_LEN));
	}
	return want;
}

/* The bus address of the next @len bytes, which never straddle a mapped entry. */
static dma_addr_t dcbm_take(struct dcbm_cursor *cursor, unsigned int len)
{
	dma_addr_t addr = sg_dma_address(cursor->sg) + cursor->used;

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
	struct dcbm_cursor src = { share->src }, dst = { share->dst };
	struct dcbm_desc *desc = NULL;
	unsigned int i;

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
 * Return: 0, or -EIO with nothing mapped.
 */
noinline int dcbm_map(struct dcbm_share *share, struct dcbm_channel *ch)
{
	if (!dma_map_sg(ch->dev, share->src, share->nr_pieces, DMA_TO_DEVICE))
		return -EIO;
	if (!dma_map_sg(ch->dev, share->dst, share->nr_pieces, DMA_FROM_DEVICE)) {
		dma_unmap_sg(ch->dev, share->src, share->nr_pieces, DMA_TO_DEVICE);
		return -EIO;
	}
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
 * Context: any; the device has no access to the share any more.
 */
void dcbm_unmap(struct dcbm_share *share, struct dcbm_channel *ch, unsigned long attrs)
{
	if (!share->mapped)
		return;
	dma_unmap_sg_attrs(ch->dev, share->src, share->nr_pieces, DMA_TO_DEVICE, attrs);
	dma_unmap_sg_attrs(ch->dev, share->dst, share->nr_pieces, DMA_FROM_DEVICE, attrs);
	share->mapped = false;
}
