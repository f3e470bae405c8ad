/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The memory under test: areas of several kinds, and the generations, which is never moved and says
 * which generation every page must be of.
 *
 * Whoever looks into a page or changes it claims it first: a claim is a bit in the page's generations
 * entry. So a page's content is known at every moment at which anyone looks, and a write that got
 * lost, or content that came back, cannot be mistaken for someone else's write. Movers claim
 * nothing: to them no page is ever busy.
 */
#ifndef INTEGRITY_TEST_MEMORY_H
#define INTEGRITY_TEST_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "options.h"
#include "util.h"

enum trait {
	AREA_ANON = 1,		/* private and anonymous */
	AREA_SHMEM = 2,		/* a memfd, shared */
	AREA_DISK = 4,		/* a file below --file, shared */
	AREA_MERGEABLE = 8,		/* anonymous, pages alike in content, for KSM */
	AREA_LARGE = 16,	/* anonymous, in folios of more than a page */
};

/* Pages that fit into an worker's scratch memory, and into a pipe of default size. */
#define SPAN_PAGES 16

#define MERGEABLE_KINDS 4		/* different pages among twins */
#define MOST_AREAS 6

struct area {
	const char *name;
	unsigned int traits;
	size_t folio_bytes;	/* of the folios it starts with */
	char *base;
	uint32_t pages;
	uint32_t first;		/* number of its first page; unique over all areas */
	int fd;			/* AREA_SHMEM, AREA_DISK; else -1 */
};

struct test_memory {
	const struct options *options;
	struct area areas[MOST_AREAS];
	size_t count;
	atomic_uint *generations;	/* one entry a page: generation, and BUSY while claimed */
	atomic_bool stop;
	atomic_uint_fast64_t moves;	/* calls of move_pages(2) */
	/* Module cycles in which the module's migrator has copied something. */
	atomic_uint_fast64_t switches_while_busy;
	atomic_uint errors;
};

void test_memory_open(struct test_memory *mem, const struct options *options);
void test_memory_close(struct test_memory *mem);

/* The number a page carries in its words: its own, or among twins that of its kind. */
uint32_t area_identity(const struct area *area, uint32_t index);

static inline char *area_address(const struct area *area, uint32_t index)
{
	return area->base + index * PAGE_BYTES;
}

#endif
