// SPDX-License-Identifier: GPL-2.0
/* move_pages(2) to the other node and back, in calls of many pages or of one. */
#include <numaif.h>

#include "migration.h"
#include "util.h"
#include "workload.h"

/* As many as the kernel migrates in one batch, behind one TLB flush. */
#define CALL_PAGES ((size_t)512)

static size_t min(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Ask for as many page moves as the options say: the whole target to one node, then to the other, in turn. */
struct work run_moves(const struct target *target, const struct options *options)
{
	int node = options->to;
	struct work work = { 0 };
	struct moveset set;
	size_t at = 0;

	moveset_init(&set, target->base, CALL_PAGES * PAGE_BYTES, PAGE_BYTES);
	for (size_t left = options->moves, count; left; left -= count) {
		struct move_result result;

		count = min(min(CALL_PAGES, left), target->pages - at);
		moveset_retarget(&set, target->base + at * PAGE_BYTES, count * PAGE_BYTES, PAGE_BYTES);
		result = moveset_move(&set, node, MPOL_MF_MOVE, options->workload->pages_per_call);
		work.ns += result.ns;
		work.moved += result.moved;
		work.failed += result.failed;
		at += count;
		if (at == target->pages) {
			at = 0;
			node = options->from + options->to - node;
		}
	}
	moveset_free(&set);
	return work;
}
