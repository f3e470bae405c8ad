/* SPDX-License-Identifier: GPL-2.0 */
/* Moves the memory by move_pages(2), batch after batch: all of it to the other node, then back, and so on. */
#ifndef TLBBENCH_MOVER_H
#define TLBBENCH_MOVER_H

#include "migration.h"
#include "workload.h"

struct mover {
	const struct target *target;
	struct moveset set;
	int nodes[2];
	size_t at;		/* the next page */
	unsigned int trip;	/* 0: there, 1: back */
};

void mover_open(struct mover *mover, const struct target *target, const struct options *options);

/*
 * Ask for the next batch, at most `pages`, with move_pages(2)'s `flags`, and add to *work what came of it. Returns the
 * number of pages asked for.
 */
size_t mover_move(struct mover *mover, size_t pages, int flags, struct work *work);

void mover_close(struct mover *mover);

#endif
