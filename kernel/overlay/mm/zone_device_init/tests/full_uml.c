// SPDX-License-Identifier: GPL-2.0
/*
 * The slow path of mm/mm_init.c for tests and benchmarks in User-Mode Linux,
 * which has no ZONE_DEVICE. Other kernels test the one in mm_init.c.
 */

#include <linux/memremap.h>
#include <linux/minmax.h>
#include <linux/mm.h>

#include "../../internal.h"
#include "../zone_device_init.h"

/* As if the vmemmap were deduplicated unless the device holds it. */
unsigned long memmap_compound_nr(unsigned long pfn, struct vmem_altmap *altmap,
				 struct dev_pagemap *pgmap)
{
	unsigned long nr = pgmap_vmemmap_nr(pgmap);

	return altmap ? nr : min(nr, 2 * PAGE_SIZE / sizeof(struct page));
}

/*
 * __init_single_page() within __init_zone_device_page(): x86-64 compilers
 * inline the former into the latter in mm_init.c, and call the latter for each
 * page. Do the same here, because the benchmark compares other methods with
 * this.
 */
static noinline void full_init_page(struct page *page, unsigned long pfn,
				    unsigned long zone_idx, int nid,
				    struct dev_pagemap *pgmap)
{
	mm_zero_struct_page(page);
	set_page_links(page, zone_idx, nid, pfn);
	init_page_count(page);
	atomic_set(&page->_mapcount, -1);
	page_cpupid_reset_last(page);
	page_kasan_tag_reset(page);
	INIT_LIST_HEAD(&page->lru);
	__set_bit(PG_reserved, &page->flags.f);
	page_folio(page)->pgmap = pgmap;
	page->zone_device_data = NULL;
	if (pgmap->type != MEMORY_DEVICE_GENERIC)
		set_page_count(page, 0);
}

void memmap_init_full(const struct memmap_range *range, unsigned long pfn,
		      unsigned long end_pfn, unsigned long max_nr)
{
	unsigned long zone_idx = range->zone_idx, i, nr;
	struct page *head = memmap_range_page(range, pfn);
	struct dev_pagemap *pgmap = range->pgmap;
	unsigned int order = pgmap->vmemmap_shift;
	int nid = range->nid;

	for (; pfn < end_pfn; pfn += 1UL << order, head += 1UL << order) {
		full_init_page(head, pfn, zone_idx, nid, pgmap);
		if (!order)
			continue;

		nr = memmap_compound_nr(pfn, range->altmap, pgmap);
		nr = min(nr, max_nr);
		__set_bit(PG_head, &head->flags.f);
		for (i = 1; i < nr; i++) {
			full_init_page(&head[i], pfn + i, zone_idx, nid, pgmap);
			prep_compound_tail(&head[i], head, order);
			set_page_count(&head[i], 0);
		}
		prep_compound_head(head, order);
	}
}
