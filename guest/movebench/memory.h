/* SPDX-License-Identifier: GPL-2.0 */
/* The memory that movebench moves: of one kind, in folios of one size, on one node. */
#ifndef MOVEBENCH_MEMORY_H
#define MOVEBENCH_MEMORY_H

#include "blockdev.h"
#include "options.h"
#include "pattern.h"
#include "util.h"

struct memory {
	char *base;
	size_t bytes;
	int fd;			/* of shmem and file; else -1 */
	struct pattern content;
	struct swapdev swap;	/* of swapcache */
};

/* Allocated on options->from and filled. */
void memory_open(struct memory *memory, const struct options *options);
void memory_close(struct memory *memory, const struct options *options);

/*
 * Linux 7.3 marks an anonymous folio that is neither one page nor mapped by a PMD as partially
 * mapped while it unmaps it for migration, carries the mark over to the copy, and so splits the
 * folio when it migrates again. Such memory must be freed and allocated again before each move.
 */
bool memory_must_renew(const struct options *options);

/* Free anonymous memory, and allocate it on `node` with new content. */
void memory_renew(struct memory *memory, int node);

/* Map it read-only. */
void memory_protect(struct memory *memory);

/* End the program with `status` unless all of it is of the folio size (and, for swapcache, in the swap cache). */
void memory_require_folios(const struct memory *memory, const struct options *options, const char *when,
			   enum exit_status status);

#endif
