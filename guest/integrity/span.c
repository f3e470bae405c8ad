// SPDX-License-Identifier: GPL-2.0
#include "span.h"

#include "report.h"

#define BUSY (1u << 31)

static atomic_uint *entry(const struct span *span, uint32_t i)
{
	return &span->mem->generations[span->area->first + span->first + i];
}

static uint32_t generation(const struct span *span, uint32_t i)
{
	return atomic_load_explicit(entry(span, i), memory_order_relaxed) & ~BUSY;
}

static uint32_t identity(const struct span *span, uint32_t i)
{
	return area_identity(span->area, span->first + i);
}

static struct area *pick_area(struct worker *worker, unsigned int traits, unsigned int without)
{
	struct area *fitting[MOST_AREAS];
	size_t count = 0;

	for (size_t i = 0; i < worker->mem->count; i++) {
		struct area *area = &worker->mem->areas[i];

		if (area->traits & traits && !(area->traits & without))
			fitting[count++] = area;
	}
	return count ? fitting[worker_random(worker, count)] : NULL;
}

bool span_pick(struct worker *worker, struct span *span, unsigned int traits, unsigned int without,
	       uint32_t most)
{
	struct area *area = pick_area(worker, traits, without);

	if (!area)
		return false;
	span->mem = worker->mem;
	span->area = area;
	span->count = 1 + worker_random(worker, most < area->pages ? most : area->pages);
	span->first = worker_random(worker, area->pages - span->count + 1);
	return true;
}

static bool claim_page(atomic_uint *page)
{
	unsigned int was = atomic_load_explicit(page, memory_order_relaxed);

	return !(was & BUSY) &&
	       atomic_compare_exchange_strong_explicit(page, &was, was | BUSY, memory_order_acquire,
						       memory_order_relaxed);
}

static void release_first(const struct span *span, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		atomic_fetch_and_explicit(entry(span, i), ~BUSY, memory_order_release);
}

bool span_claim(const struct span *span)
{
	for (uint32_t i = 0; i < span->count; i++) {
		if (!claim_page(entry(span, i))) {
			/* Do not wait for it: two workers, each with claimed pages, could deadlock. */
			release_first(span, i);
			return false;
		}
	}
	return true;
}

void span_release(const struct span *span)
{
	release_first(span, span->count);
}

bool span_pick_claimed(struct worker *worker, struct span *span, unsigned int traits,
		       unsigned int without, uint32_t most)
{
	return span_pick(worker, span, traits, without, most) && span_claim(span);
}

static void note(const struct span *span, uint32_t i, uint32_t generation)
{
	atomic_store_explicit(entry(span, i), generation | BUSY, memory_order_relaxed);
}

void span_stamp_as(const struct span *span, uint32_t generation)
{
	for (uint32_t i = 0; i < span->count; i++) {
		stamp_write(area_address(span->area, span->first + i), identity(span, i), generation);
		note(span, i, generation);
	}
}

void span_advance(const struct span *span)
{
	for (uint32_t i = 0; i < span->count; i++)
		note(span, i, generation(span, i) + 1);
}

void span_stamp_copy(const struct span *span, void *copy, uint32_t ahead)
{
	for (uint32_t i = 0; i < span->count; i++)
		stamp_write((char *)copy + i * PAGE_BYTES, identity(span, i), generation(span, i) + ahead);
}

void span_stamp(const struct span *span)
{
	span_stamp_copy(span, span_address(span), 1);
	span_advance(span);
}

bool span_matches(const struct span *span, const void *copy, uint32_t ahead, struct mismatch *wrong)
{
	for (uint32_t i = 0; i < span->count; i++)
		if (!stamp_check((const char *)copy + i * PAGE_BYTES, identity(span, i),
				 generation(span, i) + ahead, wrong))
			return false;
	return true;
}

bool span_check_copy(const struct span *span, const void *copy, const char *by)
{
	struct mismatch wrong;

	if (span_matches(span, copy, 0, &wrong))
		return true;
	report_wrong(span->mem, span->area, &wrong, by);
	return false;
}

bool span_check(const struct span *span, const char *by)
{
	return span_check_copy(span, span_address(span), by);
}

bool span_check_any(struct worker *worker)
{
	struct span span;

	if (!span_pick_claimed(worker, &span, ~0u, 0, SPAN_PAGES))
		return false;
	span_check(&span, worker->stressor->name);
	span_release(&span);
	return true;
}
