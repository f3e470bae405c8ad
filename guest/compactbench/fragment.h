/* SPDX-License-Identifier: GPL-2.0 */
/* A node that is full of single pages, of which every second one is free. */
#ifndef COMPACTBENCH_FRAGMENT_H
#define COMPACTBENCH_FRAGMENT_H

#include <stddef.h>

struct fragments {
	char *base;
	size_t reserved;	/* address space, bytes */
	size_t bytes;		/* that were filled */
};

/*
 * Fill the free memory of a node with pages of this process, down to a few MiB above its watermarks, so that nothing
 * reclaims; then free every second page. Ends the program with EXIT_FAILED if there is no room.
 */
void fragments_make(struct fragments *fragments, int node);

/* Free every second page of those that were filled: a part of fragments_make(). */
void fragments_punch(const struct fragments *fragments);

/* Ends the program with EXIT_FAILED if a page does not hold what it did. */
void fragments_free(struct fragments *fragments);

#endif
