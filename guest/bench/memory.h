/* SPDX-License-Identifier: GPL-2.0 */
/* The memory that movebench moves: of one kind, in folios of one size, on one node. */
#ifndef BENCH_MEMORY_H
#define BENCH_MEMORY_H

#include "options.h"
#include "swapdev.h"

struct memory {
	char *base;
	size_t bytes;
	int fd;			/* of shmem and file; else -1 */
	struct swapdev swap;	/* of swapcache */
};

/* Allocated on options->from, every page stamped with generation 0. */
void memory_open(struct memory *memory, const struct options *options);
void memory_close(struct memory *memory, const struct options *options);

/* End the program unless all of it still is of the folio size (and, for swapcache, in the swap cache). */
void memory_require_folios(const struct memory *memory, const struct options *options, const char *when);

#endif
