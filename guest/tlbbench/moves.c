// SPDX-License-Identifier: GPL-2.0
/* move_pages(2) to the other node and back, while the threads of this program read. */
#include <numaif.h>

#include "mover.h"
#include "workload.h"

struct work run_moves(const struct target *target, const struct options *options)
{
	struct work work = { 0 };
	struct mover mover;

	mover_open(&mover, target, options);
	for (size_t left = options->moves; left;)
		left -= mover_move(&mover, left, MPOL_MF_MOVE, &work);
	mover_close(&mover);
	return work;
}
