// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Cutting a batch into shares
 *
 * A batch is one run of bytes. Each channel gets an equal, contiguous part of it, cut at page
 * boundaries, so that all work even on one large folio, and neighbours that adjoin in memory
 * stay neighbours.
 *
 * What a share needs exists since its channel is held: nothing is allocated here. A batch with
 * more bytes or pieces than its channels have room for is copied in several rounds.
 *
 * Lock order: none are taken.
 */

#include <linux/dma-mapping.h>
#include <linux/mm.h>

#include "internal.h"

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
	/* One for each folio, each cut within one, and the end; so many are worth clearing. */
	unsigned int most = min(run->batch->nr - run->pair + want / max_len + 1, DCBM_MAX_PIECES);

	share->bytes = 0;
	share->nr_pieces = 0;
	share->nr_descs = 0;
	sg_init_table(share->src, most);
	sg_init_table(share->dst, most);
	while (share->bytes < want && run->pair < run->batch->nr &&
	       share->nr_pieces < most) {
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

	want = min(want, DCBM_MAX_SHARE);
	if (!want)
		return false;
	for (i = 0; i < run->nr; i++) {
		struct device *dev = run->ch[i]->dev;
		size_t max_len = min(dma_get_max_seg_size(dev), dma_max_mapping_size(dev));

		dcbm_cut_share(run, &run->ch[i]->share, want,
			       clamp(round_down(max_len, PAGE_SIZE), PAGE_SIZE, DCBM_MAX_LEN));
	}
	return true;
}
