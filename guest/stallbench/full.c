// SPDX-License-Identifier: GPL-2.0
#include "full.h"

#include <numa.h>
#include <numaif.h>
#include <stddef.h>
#include <sys/mman.h>

#include "util.h"

/* Every second page of so much memory is a hole: twice what moves, since compaction needs room to work. */
#define HOLED_BYTES ((size_t)128 << 20)

static char *memory;
static size_t holed;	/* offset of the part that has holes */
static size_t filled;	/* bytes */

static int node_of(void *address)
{
	int node = -1;

	if (get_mempolicy(&node, NULL, 0, address, MPOL_F_NODE | MPOL_F_ADDR))
		die(EXIT_FAILED, "get_mempolicy: %m");
	return node;
}

static void touch_pages(size_t from, size_t bytes)
{
	for (size_t at = from; at < from + bytes; at += PAGE_BYTES)
		*(volatile char *)(memory + at) = 1;
}

void full_open(int node)
{
	unsigned long mask = 1UL << node;
	long long size = numa_node_size64(node, NULL);

	if (size < 0)
		die(EXIT_MISSING, "node %d has no memory", node);
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED || mbind(memory, size, MPOL_PREFERRED, &mask, 8 * sizeof(mask), 0))
		die(EXIT_FAILED, "cannot map %lld bytes for node %d: %m", size, node);
	(void)!madvise(memory, size, MADV_NOHUGEPAGE);
	/* What the node has no room for comes from another one. */
	while (filled + HOLED_BYTES <= (size_t)size) {
		touch_pages(filled, HOLED_BYTES);
		filled += HOLED_BYTES;
		if (node_of(memory + filled - PAGE_BYTES) != node)
			break;
	}
	holed = 0;
}

void full_renew(void)
{
	touch_pages(holed, HOLED_BYTES);
	/* Not the last part, which is on another node. */
	holed += HOLED_BYTES;
	if (holed + HOLED_BYTES >= filled)
		holed = 0;
	for (size_t at = holed; at < holed + HOLED_BYTES; at += 2 * PAGE_BYTES)
		if (madvise(memory + at, PAGE_BYTES, MADV_DONTNEED))
			die(EXIT_FAILED, "MADV_DONTNEED: %m");
}
