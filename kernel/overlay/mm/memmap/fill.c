// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Filling struct pages with copies of one
 *
 * The image is held in registers or in the first-level cache and is never written between
 * two copies: a template of which a field is refreshed before each copy is slower than no
 * template, because the copy's wide loads cannot be forwarded from the narrow store. So what
 * changes from page to page is not for this file; with a virtual memmap nothing does.
 *
 * Streaming stores are left undrained: a drain stalls until the write buffers are empty, some
 * hundred ns, which is dear once per compound and nothing once per chunk.
 *
 * Lock order: none is taken. Any context.
 */

#include <linux/copy_nontemporal.h>
#include <linux/mm.h>

#include "internal.h"

/* Enough for a string instruction to come up to speed, little enough to stay in the cache. */
#define MEMMAP_BLOCK_PAGES	512

static void memmap_fill_cached(struct page *page, unsigned long nr, const struct page *image)
{
	const struct page copy = *image;

	for (; nr; nr--)
		memcpy(page++, &copy, sizeof(copy));
}

static void memmap_fill_streaming(struct page *page, unsigned long nr,
				  const struct page *image)
{
	const struct page copy = *image;

	for (; nr; nr--)
		__copy_nontemporal(page++, &copy, sizeof(copy));
}

static void memmap_fill_block(struct page *page, unsigned long nr, const struct page *image)
{
	unsigned long done = min(nr, MEMMAP_SEED_PAGES), more;

	memmap_fill_cached(page, done, image);
	for (; done < nr; done += more) {
		more = min3(done, nr - done, MEMMAP_BLOCK_PAGES);
		memcpy(page + done, page, more * sizeof(*page));
	}
}

/**
 * memmap_fill() - make struct pages copies of one
 * @page:	the first of them, not yet in use by anyone
 * @nr:		how many
 * @image:	what they shall be; outside of [@page, @page + @nr)
 * @method:	any but MEMMAP_FIELDS
 *
 * The pages may be told to nobody before copy_nontemporal_drain() on this CPU.
 *
 * Context: any.
 */
void memmap_fill(struct page *page, unsigned long nr, const struct page *image,
		 enum memmap_method method)
{
	if (method == MEMMAP_STREAMING && copy_nontemporal_possible(page, sizeof(*page)))
		memmap_fill_streaming(page, nr, image);
	else if (method == MEMMAP_BLOCK)
		memmap_fill_block(page, nr, image);
	else
		memmap_fill_cached(page, nr, image);
}
