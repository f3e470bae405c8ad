/* SPDX-License-Identifier: GPL-2.0 */
/* Neighbouring pages of one area that one worker works on. */
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

/* 1 to `most` random pages of an area with one of `traits` and none of `without`; false if no area has. */
bool span_pick(struct worker *worker, struct span *span, unsigned int traits, unsigned int without,
	       uint32_t most);

/* The same, and all of them claimed; false also if another worker has one of them. */
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

/* Of a claimed span. */

/* Store the next generation, or a given one, in memory and generations. */
void span_stamp(const struct span *span);
void span_stamp_as(const struct span *span, uint32_t generation);

/* Someone else has stored the next generation in memory: note it in the generations. */
void span_advance(const struct span *span);

/* The stamps that the span will hold `ahead` generations from now, into other memory. */
void span_stamp_copy(const struct span *span, void *copy, uint32_t ahead);

/* Is `copy` what the span holds, or will hold `ahead` generations from now? *wrong if not. */
bool span_matches(const struct span *span, const void *copy, uint32_t ahead, struct mismatch *wrong);

/* Report a wrong byte in the span, or in a copy of it that `by` got by other means. */
bool span_check(const struct span *span, const char *by);
bool span_check_copy(const struct span *span, const void *copy, const char *by);

#endif
