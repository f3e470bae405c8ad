/* SPDX-License-Identifier: GPL-2.0 */
/* Adjacent pages of one area that one worker uses. */
#ifndef INTEGRITY_SPAN_H
#define INTEGRITY_SPAN_H

#include "folio.h"
#include "test_memory.h"
#include "util.h"
#include "worker.h"

struct span {
	struct test_memory *mem;
	struct area *area;
	uint32_t first;		/* index in the area */
	uint32_t count;
};

/* Pick 1 to `most` pages of a random area that has one of `traits` and none of `without`; false if none has. */
bool span_pick(struct worker *worker, struct span *span, unsigned int traits, unsigned int without,
	       uint32_t most);

/* Pick and claim; false also if another worker has claimed one of the pages. */
bool span_pick_claimed(struct worker *worker, struct span *span, unsigned int traits,
		       unsigned int without, uint32_t most);

bool span_claim(const struct span *span);
void span_release(const struct span *span);

static inline char *span_address(const struct span *span)
{
	return area_address(span->area, span->first);
}

static inline size_t span_bytes(const struct span *span)
{
	return span->count * PAGE_BYTES;
}

/* The functions below require a claimed span. */

/* Store the next generation, or a given one, in the pages, and record it. */
void span_stamp(const struct span *span);
void span_stamp_as(const struct span *span, uint32_t generation);

/* Record the next generation, after a device or the kernel has stored it in the pages. */
void span_advance(const struct span *span);

/* Store in `copy` the content that the span will have `ahead` generations from now. */
void span_stamp_copy(const struct span *span, void *copy, uint32_t ahead);

/* Compare `copy` with the content of the span `ahead` generations from now; false sets *wrong. */
bool span_matches(const struct span *span, const void *copy, uint32_t ahead, struct mismatch *wrong);

/* Check the span, or a copy that test `by` took of it; false if a wrong byte was reported. */
bool span_check(const struct span *span, const char *by);
bool span_check_copy(const struct span *span, const void *copy, const char *by);

/* As run_once(): claim, check and release up to SPAN_PAGES pages of any area, in the name of the worker's stressor. */
bool span_check_any(struct worker *worker);

#endif
