// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: The template of a range
 *
 * memmap_init_fields() says what a struct page of a device is. Nearly all pages of a range
 * are the same to the last bit, so a few are made by it and the rest are copies.
 *
 * The template is taken from the first page, or from a head and a tail of the first compound.
 * Then its neighbour, and the last page or compound of the range, are made by the slow path
 * and compared with it, byte by byte, and what refreshing yields with what the slow path does.
 * A difference means a field that this file does not know of, and there is no template: a field
 * that differs between neighbours, between the ends of a range or between the tails of a
 * compound costs the speed, not the truth. One that changes in between and back again would go
 * unnoticed; the one that ever changed with blocks of PFNs, the section, is excluded by name.
 *
 * Known, and refreshed per compound: the tails' pointer to their head (a mask, with HugeTLB
 * vmemmap optimisation), and what prep_compound_head() writes to the first pages, a list head
 * that points to itself among it.
 *
 * Life cycle: possible, make, apply to any chunk on any CPU; it lives on the caller's stack.
 *
 * Lock order: none is taken; nobody but the caller uses the pages.
 */

#include <linux/copy_nontemporal.h>
#include <linux/mm.h>
#include <linux/page_ref.h>
#include <linux/prefetch.h>

#include "../internal.h"
#include "internal.h"

/**
 * memmap_template_possible() - may the pages of a range be copies of a template?
 * @range:	the range
 *
 * Not while the tracepoint of every initial reference count is on; not where stores are
 * instrumented; not for compounds too small to have pages that are alike.
 *
 * Return: true if so.
 */
bool memmap_template_possible(const struct memmap_range *range)
{
	unsigned long span = pgmap_vmemmap_nr(range->pgmap);

	if (IS_ENABLED(CONFIG_KASAN) || IS_ENABLED(CONFIG_KMSAN) || IS_ENABLED(CONFIG_KCSAN))
		return false;
#ifdef SECTION_IN_PAGE_FLAGS
	return false;
#endif
	if (page_ref_tracepoint_active(page_ref_set))
		return false;
	return span == 1 || span > MEMMAP_SEED_PAGES;
}

static void memmap_refresh_tail(struct page *tail, struct page *head, unsigned int order)
{
	if (order)
		set_compound_head(tail, head, order);
}

/* Enough of a compound to see that its tails are alike. */
#define MEMMAP_CHECKED_PAGES	512

/* No field has it, and it does not look like a tail to whoever peeks. */
#define MEMMAP_UNSET		0xaa

static bool memmap_tails_right(const struct page *head, unsigned long nr, const struct page *tail)
{
	unsigned long i;

	for (i = MEMMAP_FOLIO_PAGES; i < nr; i++)
		if (memcmp(&head[i], tail, sizeof(*tail)))
			return false;
	return true;
}

/**
 * memmap_template_right() - does a template yield what the slow path does?
 * @range:	a range
 * @pfn:	a PFN of it that begins a page or compound
 * @template:	the template
 *
 * The page or compound at @pfn has to be initialised again.
 *
 * Return: true if each byte of it is the same both ways.
 */
bool __ref memmap_template_right(const struct memmap_range *range, unsigned long pfn,
				 const struct memmap_template *template)
{
	unsigned long nr = memmap_compound_nr(pfn, range->altmap, range->pgmap);
	struct page *page = memmap_range_page(range, pfn), tail = template->tail;
	struct page want[MEMMAP_FOLIO_PAGES];
	size_t size;

	nr = min(nr, MEMMAP_CHECKED_PAGES);
	size = min(nr, MEMMAP_FOLIO_PAGES) * sizeof(*page);
	memmap_init_fields(range, pfn, pfn + 1, nr);
	memmap_refresh_tail(&tail, page, range->pgmap->vmemmap_shift);
	if (nr > 1 && !memmap_tails_right(page, nr, &tail))
		return false;
	/* The pages that a folio spans are made by more than copying. */
	memcpy(want, page, size);
	memset(page, MEMMAP_UNSET, size);
	memmap_template_apply(range, pfn, pfn + 1, nr, template, MEMMAP_CACHED);
	return !memcmp(want, page, size);
}

/**
 * memmap_template_make() - make the template of a range
 * @range:	the range, for which memmap_template_possible()
 * @template:	receives the template
 *
 * The pages used for it have to be initialised again.
 *
 * Return: true if @template can be applied to the range.
 */
bool __ref memmap_template_make(const struct memmap_range *range,
				struct memmap_template *template)
{
	unsigned long span = pgmap_vmemmap_nr(range->pgmap), pfn = range->start_pfn;
	unsigned long compounds = (range->end_pfn - pfn) / span;
	struct page *page = range->pages;

	if (compounds < 2)
		return false;

	memmap_init_fields(range, pfn, pfn + 1, min(span, MEMMAP_SEED_PAGES));
	template->head = page[0];
	template->tail = page[span > 1 ? MEMMAP_SEED_PAGES - 1 : 0];
	return memmap_template_right(range, pfn + span, template) &&
	       memmap_template_right(range, pfn + (compounds - 1) * span, template);
}

/*
 * Ordinary stores to lines that are not cached would hold up the streaming ones behind them.
 * So the next lines of that kind are asked for while the rest of this block is written; behind
 * the end of the range, a prefetch does nothing.
 */
static void memmap_prefetch(struct page *page, unsigned int nr)
{
	for (; nr; nr--)
		prefetchw(page++);
}

static void memmap_apply_pages(struct page *page, unsigned long pfn, unsigned long end_pfn,
			       const struct page *image, enum memmap_method method)
{
	unsigned long next;

	for (; pfn < end_pfn; page += next - pfn, pfn = next) {
		next = min(pageblock_end_pfn(pfn), end_pfn);
		/* The caller goes on to read the first page of each block: keep it cached. */
		memcpy(page, image, sizeof(*page));
		memmap_prefetch(page + (next - pfn), 1);
		memmap_fill(page + 1, next - pfn - 1, image, method);
	}
}

static void memmap_apply_compound(struct page *head, unsigned long nr, unsigned int order,
				  const struct memmap_template *template,
				  enum memmap_method method)
{
	struct page tail = template->tail;

	memmap_refresh_tail(&tail, head, order);
	memcpy(head, &template->head, sizeof(*head));
	memmap_fill(head + 1, MEMMAP_FOLIO_PAGES - 1, &tail, MEMMAP_CACHED);
	memmap_prefetch(head + (1UL << order), MEMMAP_FOLIO_PAGES);
	/*
	 * No drain in between: prep_compound_head() reads and writes only what was stored by
	 * ordinary means, and nobody else looks before memmap_template_apply() has drained.
	 */
	memmap_fill(head + MEMMAP_FOLIO_PAGES, nr - MEMMAP_FOLIO_PAGES, &tail, method);
	prep_compound_head(head, order);
}

/**
 * memmap_template_apply() - initialise struct pages from a template
 * @range:	the range that the template was made for
 * @pfn:	first PFN, which begins a page or compound
 * @end_pfn:	end; the compound that it lies in is completed
 * @compound_nr: struct pages that a compound has
 * @template:	the template
 * @method:	how to write; any but MEMMAP_FIELDS
 *
 * Context: any, without moving to another CPU unless through the scheduler, whose locks order
 * streaming stores too. Distinct parts of a range may be initialised at once.
 */
void memmap_template_apply(const struct memmap_range *range, unsigned long pfn,
			   unsigned long end_pfn, unsigned long compound_nr,
			   const struct memmap_template *template,
			   enum memmap_method method)
{
	unsigned int order = range->pgmap->vmemmap_shift;

	if (!order)
		memmap_apply_pages(memmap_range_page(range, pfn), pfn, end_pfn,
				   &template->head, method);
	for (; order && pfn < end_pfn; pfn += 1UL << order)
		memmap_apply_compound(memmap_range_page(range, pfn), compound_nr, order,
				      template, method);
	/* What this CPU streamed comes before whatever tells of it. */
	copy_nontemporal_drain();
}
