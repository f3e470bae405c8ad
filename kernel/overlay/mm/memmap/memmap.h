/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MM_MEMMAP_H
#define _MM_MEMMAP_H

#include <linux/bits.h>
#include <linux/math.h>
#include <linux/memremap.h>
#include <linux/minmax.h>
#include <linux/mmzone.h>
#include <linux/sched.h>

/**
 * struct memmap_range - struct pages of one ZONE_DEVICE range, to be initialised
 * @pages:	the first of them; the others follow, as ZONE_DEVICE has a virtual memmap
 * @start_pfn:	the PFN that @pages stands for
 * @end_pfn:	the first PFN behind the range
 * @zone_idx:	the zone in their flags
 * @nid:	the node in their flags
 * @pgmap:	whose pages they are: type and compound order
 * @altmap:	where they are kept if not in memory, or NULL
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

/* Work is done and shared in such pieces; flat and other memmaps are for benchmarks only. */
#ifdef CONFIG_SPARSEMEM
#define MEMMAP_CHUNK_PFNS	PAGES_PER_SECTION
#else
#define MEMMAP_CHUNK_PFNS	BIT(13)
#endif

/*
 * The end of the chunk that @pfn begins: the next section, rounded up to a whole compound.
 * All compounds of a chunk so begin in one section, and have the same number of struct pages.
 */
static inline unsigned long memmap_chunk_end(const struct memmap_range *range,
					     unsigned long pfn)
{
	unsigned long end = ALIGN(pfn + 1, MEMMAP_CHUNK_PFNS);

	end = pfn + round_up(end - pfn, pgmap_vmemmap_nr(range->pgmap));
	return min(end, range->end_pfn);
}

#ifdef CONFIG_ZONE_DEVICE
/* The struct pages that a compound beginning at @pfn really has. */
unsigned long memmap_compound_nr(unsigned long pfn, struct vmem_altmap *altmap,
				 struct dev_pagemap *pgmap);
#else
static inline unsigned long memmap_compound_nr(unsigned long pfn,
					       struct vmem_altmap *altmap,
					       struct dev_pagemap *pgmap)
{
	return pgmap_vmemmap_nr(pgmap);
}
#endif

/*
 * Initialise the struct pages of [pfn, end_pfn) field by field. Of each compound, only the
 * first @compound_nr. This says what a struct page of a device is; whatever is faster has to
 * leave the same bytes.
 */
void memmap_init_fields(const struct memmap_range *range, unsigned long pfn,
			unsigned long end_pfn, unsigned long compound_nr);

#ifdef CONFIG_ZONE_DEVICE_INIT_TEMPLATE
void memmap_init_device_range(const struct memmap_range *range);
#else
static inline void memmap_init_device_range(const struct memmap_range *range)
{
	unsigned long pfn, end;

	for (pfn = range->start_pfn; pfn < range->end_pfn; pfn = end) {
		end = memmap_chunk_end(range, pfn);
		memmap_init_fields(range, pfn, end,
				   memmap_compound_nr(pfn, range->altmap, range->pgmap));
		cond_resched();
	}
}
#endif

#endif /* _MM_MEMMAP_H */
