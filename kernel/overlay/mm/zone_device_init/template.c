// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: The template of a range
 *
 * memmap_init_full() defines the contents of a ZONE_DEVICE struct page. Nearly
 * all struct pages of a range are the same to the last bit, because a virtual
 * memmap keeps the section out of the page flags. So the slow path makes a few
 * of them, and the others are copies.
 *
 * The template is the first page of the range, or the head and a tail of its
 * first compound. The slow path then initialises a neighbour, and the last page
 * or compound of the range, and memmap_template_matches() compares them byte by
 * byte with the result of the template. If they differ, a field depends on
 * something that this file does not know of, and the range gets no template: a
 * field that differs between neighbours, between both ends of a range or
 * between the tails of a compound costs the speed, and not the contents. A
 * field that changes in between and back again would go unnoticed. The one
 * field that ever changed with blocks of PFNs is the section, and the build
 * fails where it is in the page flags.
 *
 * Two things are known to change, and are set for each compound: the tails'
 * pointer to their head (a mask with HugeTLB vmemmap optimisation), and the
 * fields that prep_compound_head() writes to the first pages, among them a list
 * head that points to itself.
 *
 * The CPU holds the image in registers and never stores to it between copies.
 * If a field were refreshed before each copy, the copy would stall: its wide
 * loads cannot be forwarded from the narrow store.
 *
 * Life cycle: possible, make, apply to any chunk on any CPU. The template lives
 * on the stack of memmap_init_device_range(). Until that returns, only the CPUs
 * that initialise the range use its struct pages, so no lock is needed.
 */

#include <linux/copy_nontemporal.h>
#include <linux/mm.h>
#include <linux/page_ref.h>
#include <linux/prefetch.h>

#include "../internal.h"
#include "internal.h"

#ifdef SECTION_IN_PAGE_FLAGS
#error "The page flags differ between sections"
#endif

/**
 * memmap_template_possible() - may struct pages be copies of a template?
 * @range: the range
 *
 * Not where a tracepoint wants to see each initial reference count, where a
 * sanitizer instruments stores, where the architecture has no non-temporal
 * stores, and not for compounds too small to have tails that are alike.
 *
 * Return: true if they may.
 */
bool memmap_template_possible(const struct memmap_range *range)
{
	unsigned long span = pgmap_vmemmap_nr(range->pgmap);

	if (IS_ENABLED(CONFIG_KASAN_GENERIC) ||
	    IS_ENABLED(CONFIG_KASAN_SW_TAGS) ||
	    IS_ENABLED(CONFIG_KMSAN) || IS_ENABLED(CONFIG_KCSAN))
		return false;
	if (page_ref_tracepoint_active(page_ref_set))
		return false;
	if (!copy_nontemporal_possible(range->pages, sizeof(struct page)))
		return false;
	return span == 1 || span > MEMMAP_SEED_PAGES;
}

static void memmap_copy_image(struct page *page, unsigned long nr,
			      const struct page *image)
{
	const struct page copy = *image;

	for (; nr; nr--)
		__copy_nontemporal(page++, &copy, sizeof(copy));
}

static void memmap_apply_compound(struct page *head, unsigned long nr,
				  unsigned int order,
				  const struct memmap_template *template)
{
	struct page tail = template->tail;
	unsigned int i;

	set_compound_head(&tail, head, order);
	memcpy(head, &template->head, sizeof(*head));
	for (i = 1; i < MEMMAP_FOLIO_PAGES; i++)
		memcpy(head + i, &tail, sizeof(tail));
	/*
	 * No drain in between: prep_compound_head() reads and writes only what
	 * ordinary stores wrote, and no other CPU looks before
	 * memmap_init_chunk() has drained.
	 */
	memmap_copy_image(head + MEMMAP_FOLIO_PAGES, nr - MEMMAP_FOLIO_PAGES,
			  &tail);
	prep_compound_head(head, order);
}

/**
 * memmap_template_apply() - initialise struct pages from a template
 * @range: the range that the template was made for
 * @pfn: first PFN, which begins a page or compound
 * @end_pfn: end; the compound that it lies in is completed
 * @template: the template
 *
 * The caller calls copy_nontemporal_drain() before it publishes the pages.
 *
 * Context: any. Distinct parts of a range may be initialised at once. A task
 * that the scheduler moves to another CPU needs no drain, because a context
 * switch orders non-temporal stores too.
 */
void __ref memmap_template_apply(const struct memmap_range *range,
				 unsigned long pfn, unsigned long end_pfn,
				 const struct memmap_template *template)
{
	unsigned int order = range->pgmap->vmemmap_shift;
	struct page *page = memmap_range_page(range, pfn);
	unsigned long span = 1UL << order;
	unsigned int i;

	if (!order)
		memmap_copy_image(page, end_pfn - pfn, &template->head);
	for (; order && pfn < end_pfn; pfn += span, page += span) {
		/*
		 * Ordinary stores that miss the cache hold up the non-temporal
		 * ones behind them. Fetch the lines of the next head while this
		 * compound's tails are written.
		 */
		for (i = 0; pfn + span < end_pfn && i < MEMMAP_FOLIO_PAGES; i++)
			prefetchw(page + span + i);
		memmap_apply_compound(page, memmap_compound_nr(pfn,
							       range->altmap,
							       range->pgmap),
				      order, template);
	}
}

/* Enough of a compound to see that its tails are alike. */
#define MEMMAP_CHECKED_PAGES	512

/* A byte that no field is made of, and that does not look like a tail. */
#define MEMMAP_UNSET		0xaa

static bool memmap_tails_match(const struct page *head, unsigned long nr,
			       unsigned int order,
			       const struct memmap_template *template)
{
	struct page tail = template->tail;
	unsigned long i;

	set_compound_head(&tail, (struct page *)head, order);
	for (i = MEMMAP_FOLIO_PAGES; i < nr; i++)
		if (memcmp(&head[i], &tail, sizeof(tail)))
			return false;
	return true;
}

/**
 * memmap_template_matches() - compare a template with the slow path
 * @range: a range
 * @pfn: a PFN of it that begins a page or compound
 * @template: the template
 *
 * The caller has to initialise the page or compound at @pfn again.
 *
 * Return: true if both yield the same bytes.
 */
bool __ref memmap_template_matches(const struct memmap_range *range,
				   unsigned long pfn,
				   const struct memmap_template *template)
{
	struct page *page = memmap_range_page(range, pfn);
	unsigned int order = range->pgmap->vmemmap_shift;
	struct page want[MEMMAP_FOLIO_PAGES];
	unsigned long nr;

	memmap_init_full(range, pfn, pfn + 1, MEMMAP_CHECKED_PAGES);
	if (!order)
		return !memcmp(page, &template->head, sizeof(*page));

	nr = min(memmap_compound_nr(pfn, range->altmap, range->pgmap),
		 MEMMAP_CHECKED_PAGES);
	if (!memmap_tails_match(page, nr, order, template))
		return false;
	/* The pages that a folio spans are more than copies. */
	memcpy(want, page, sizeof(want));
	memset(page, MEMMAP_UNSET, sizeof(want));
	memmap_apply_compound(page, nr, order, template);
	return !memcmp(want, page, sizeof(want));
}

/**
 * memmap_template_make() - make the template of a range
 * @range: the range, for which memmap_template_possible()
 * @template: receives the template
 *
 * The caller has to initialise the whole range afterwards.
 *
 * Return: true if @template can be applied to the range.
 */
bool __ref memmap_template_make(const struct memmap_range *range,
				struct memmap_template *template)
{
	unsigned long span = pgmap_vmemmap_nr(range->pgmap);
	unsigned long pfn = range->start_pfn;
	unsigned long compounds = (range->end_pfn - pfn) / span;
	struct page *page = range->pages;

	if (compounds < 2)
		return false;

	memmap_init_full(range, pfn, pfn + 1, MEMMAP_SEED_PAGES);
	template->head = page[0];
	template->tail = page[span > 1 ? MEMMAP_SEED_PAGES - 1 : 0];
	return memmap_template_matches(range, pfn + span, template) &&
	       memmap_template_matches(range, pfn + (compounds - 1) * span,
				       template);
}

/**
 * memmap_init_chunk() - initialise a part of a range
 * @job: the range, its template
 * @method: how to initialise; not MEMMAP_AUTO
 * @pfn: first PFN, which begins a page or compound
 * @end_pfn: end; the compound that it lies in is completed
 *
 * Context: process context, may sleep. Distinct chunks may be initialised at
 * once.
 */
void __ref memmap_init_chunk(const struct memmap_job *job,
			     enum memmap_method method, unsigned long pfn,
			     unsigned long end_pfn)
{
	if (method == MEMMAP_FULL) {
		memmap_init_full(job->range, pfn, end_pfn, ULONG_MAX);
		return;
	}
	memmap_template_apply(job->range, pfn, end_pfn, &job->template);
	/* One for a chunk: it stalls until the write buffers are empty. */
	copy_nontemporal_drain();
}
