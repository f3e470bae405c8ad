/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MM_ZONE_DEVICE_INIT_H
#define _MM_ZONE_DEVICE_INIT_H

#include <linux/limits.h>
#include <linux/memremap.h>
#include <linux/mm_types.h>

/**
 * struct memmap_range - struct pages of one ZONE_DEVICE range
 * @pages: the first of them; the others follow, because ZONE_DEVICE requires a
 *	virtual memmap
 * @start_pfn: PFN of @pages
 * @end_pfn: first PFN behind the range
 * @zone_idx: zone in the page flags
 * @nid: node in the page flags
 * @pgmap: owner of the pages, with their type and compound order
 * @altmap: where the struct pages are if the device holds them, or NULL
 */
struct memmap_range {
	struct page *pages;
	unsigned long start_pfn;
	unsigned long end_pfn;
	unsigned long zone_idx;
	int nid;
	struct dev_pagemap *pgmap;
	struct vmem_altmap *altmap;
};

static inline struct page *memmap_range_page(const struct memmap_range *range,
					     unsigned long pfn)
{
	return range->pages + (pfn - range->start_pfn);
}

/*
 * Struct pages that exist of the compound at @pfn: fewer than its pages if the
 * vmemmap of the tails is deduplicated.
 */
unsigned long memmap_compound_nr(unsigned long pfn, struct vmem_altmap *altmap,
				 struct dev_pagemap *pgmap);

/*
 * The slow path: initialise the struct pages of [pfn, end_pfn) field by field,
 * of each compound at most @max_nr. This function defines the contents of a
 * ZONE_DEVICE struct page; any other method must leave the same bytes.
 */
void memmap_init_full(const struct memmap_range *range, unsigned long pfn,
		      unsigned long end_pfn, unsigned long max_nr);

#ifdef CONFIG_ZONE_DEVICE_INIT_TEMPLATE
void memmap_init_device_range(const struct memmap_range *range);
#else
static inline void memmap_init_device_range(const struct memmap_range *range)
{
	memmap_init_full(range, range->start_pfn, range->end_pfn, ULONG_MAX);
}
#endif

#endif /* _MM_ZONE_DEVICE_INIT_H */
