/* SPDX-License-Identifier: GPL-2.0 */
/* The argument arrays of move_pages(2), kept so that a timed call builds nothing. */
#ifndef GUEST_MOVESET_H
#define GUEST_MOVESET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct moveset {
	void **pages;
	int *nodes;
	int *status;
	size_t count;
};

struct move_result {
	uint64_t ns;		/* inside move_pages(2) */
	size_t moved;		/* entries that are on the node afterwards */
	size_t failed;		/* entries that are not */
	/* The first entry that failed, and its errno. */
	size_t first_failed;
	int first_error;
};

/* One entry for every `step` bytes; room for `bytes / step` of them. */
void moveset_init(struct moveset *set, char *base, size_t bytes, size_t step);
void moveset_free(struct moveset *set);

/* Point the set at other memory, not larger than it was made for. */
void moveset_aim(struct moveset *set, char *base, size_t bytes, size_t step);

/*
 * Move everything to `node`, in one call or, if `single`, one call an entry. `flags` are
 * move_pages(2)'s. errno other than a page's own ends the program with EXIT_FAILED.
 */
struct move_result moveset_move(struct moveset *set, int node, int flags, bool single);

#endif
