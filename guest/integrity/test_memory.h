/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The memory under test: areas of several kinds, and an array that is never migrated and records the
 * generation of the content of every page.
 *
 * A worker claims a page, by a bit of its entry in that array, before it reads or writes the page. The
 * expected content is therefore known at every read, and neither a lost write nor a return of old
 * content can be mistaken for a write of another worker. Movers claim no page and respect no claim.
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
	AREA_ANON = 1,		/* private, anonymous */
	AREA_SHMEM = 2,		/* a memfd, shared */
	AREA_DISK = 4,		/* a file below --file, shared */
	AREA_MERGEABLE = 8,		/* anonymous, with identical pages for KSM */
	AREA_LARGE = 16,	/* anonymous, in large folios */
	AREA_HUGETLB = 32,	/* half private, half of a file, in hugetlb folios: all or nothing of one is protected */
};

/* Pages that fit in a worker's scratch memory and in a pipe of default size. */
#define SPAN_PAGES 16

#define MERGEABLE_KINDS 4		/* different contents in a generation of AREA_MERGEABLE */
#define MOST_AREAS 7

struct area {
	const char *name;
	unsigned int traits;
	size_t folio_bytes;	/* of its folios at the start */
	char *base;
	uint32_t pages;
	uint32_t first;		/* number of its first page, unique over all areas */
	int fd;			/* AREA_SHMEM, AREA_DISK; else -1 */
};

struct test_memory {
	const struct options *options;
	struct area areas[MOST_AREAS];
	size_t count;
	atomic_uint *generations;	/* one entry a page: generation, and BUSY while claimed */
	atomic_bool stop;
	atomic_uint_fast64_t moves;	/* calls of move_pages(2) */
	/* Module cycles in which the module's migrator has copied a batch. */
	atomic_uint_fast64_t switches_while_busy;
	atomic_uint errors;
};

void test_memory_open(struct test_memory *mem, const struct options *options);
void test_memory_close(struct test_memory *mem);

bool area_known(const char *name);

/* Of each area; 0 if --bytes has no room for a folio in each. */
size_t area_bytes(const struct options *options);

/* The page number in a page's stamps: its own, but shared by pages that KSM is to merge. */
uint32_t area_identity(const struct area *area, uint32_t index);

static inline char *area_address(const struct area *area, uint32_t index)
{
	return area->base + index * PAGE_BYTES;
}

#endif
