// SPDX-License-Identifier: GPL-2.0
#include "fragment.h"

#include <inttypes.h>
#include <numa.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "folio.h"
#include "sysfs.h"
#include "util.h"

/* Above the high watermarks: free pages on the lists of CPUs are not counted as free, and other tasks need some. */
#define SPARE_KB 4096
/* COMPACT_CLUSTER_MAX of the kernel */
#define STRIDE 32

/* The high watermarks of a node's zones. */
static uint64_t high_kb(int node)
{
	FILE *zones = fopen("/proc/zoneinfo", "re");
	uint64_t pages = 0, high;
	int here = -1;
	char line[256];

	if (!zones)
		die(EXIT_MISSING, "cannot read /proc/zoneinfo: %m");
	while (fgets(line, sizeof(line), zones)) {
		sscanf(line, "Node %d, zone", &here);
		/* The lists of each CPU have a line "high:", with a colon. */
		if (here == node && sscanf(line, " high %" SCNu64, &high) == 1)
			pages += high;
	}
	fclose(zones);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* A kernel without NUMA has one node, and no files of nodes. */
static uint64_t free_kb(int node)
{
	return numa_available() < 0 ? sysfs_counter("/proc/meminfo", "MemFree:") : node_free_kb(node);
}

/* A word of each page that is kept. */
static volatile uint64_t *word_of(const struct fragments *fragments, size_t page)
{
	return (volatile uint64_t *)(fragments->base + page * PAGE_BYTES);
}

/*
 * Every second page is a hole. The even ones take turns with the odd ones, because asynchronous compaction first looks
 * for free pages at every 32nd page only: it would find all of them free, or none.
 */
static bool is_hole(size_t page)
{
	return (page ^ page / STRIDE) & 1;
}

void fragments_punch(const struct fragments *fragments)
{
	size_t pages = fragments->bytes / PAGE_BYTES;

	for (size_t page = 0; page < pages; page++)
		if (!is_hole(page))
			*word_of(fragments, page) = page + 1;
	for (size_t page = 0; page < pages; page++)
		if (is_hole(page) && madvise(fragments->base + page * PAGE_BYTES, PAGE_BYTES, MADV_DONTNEED))
			die(EXIT_FAILED, "madvise(MADV_DONTNEED): %m");
}

void fragments_make(struct fragments *fragments, int node)
{
	uint64_t keep_kb = high_kb(node) + SPARE_KB;

	fragments->reserved = (free_kb(node) * 1024) & ~(FOLIO_ALIGN - 1);
	fragments->base = folio_reserve(fragments->reserved);
	if (mprotect(fragments->base, fragments->reserved, PROT_READ | PROT_WRITE))
		die(EXIT_FAILED, "mprotect: %m");
	/* Fails on a kernel without THP, where all folios are single pages anyway. */
	madvise(fragments->base, fragments->reserved, MADV_NOHUGEPAGE);
	if (numa_available() >= 0)
		node_bind(fragments->base, fragments->reserved, node);
	for (fragments->bytes = 0; fragments->bytes < fragments->reserved; fragments->bytes += FOLIO_ALIGN) {
		if (free_kb(node) < keep_kb + FOLIO_ALIGN / 1024)
			break;
		if (madvise(fragments->base + fragments->bytes, FOLIO_ALIGN, MADV_POPULATE_WRITE))
			die(EXIT_FAILED, "madvise(MADV_POPULATE_WRITE): %m");
	}
	if (!fragments->bytes)
		die(EXIT_FAILED, "--node: node %d has no free memory to fill", node);
	fragments_punch(fragments);
}

void fragments_free(struct fragments *fragments)
{
	for (size_t page = 0; page < fragments->bytes / PAGE_BYTES; page++)
		if (!is_hole(page) && *word_of(fragments, page) != page + 1)
			die(EXIT_FAILED, "page %zu holds %" PRIu64, page, *word_of(fragments, page));
	munmap(fragments->base, fragments->reserved);
}
