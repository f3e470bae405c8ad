// SPDX-License-Identifier: GPL-2.0
#include "moveset.h"

#include <errno.h>
#include <limits.h>
#include <numaif.h>
#include <stdlib.h>

#include "clock.h"
#include "quit.h"

void moveset_aim(struct moveset *set, char *base, size_t bytes, size_t step)
{
	set->count = bytes / step;
	for (size_t i = 0; i < set->count; i++)
		set->pages[i] = base + i * step;
}

void moveset_init(struct moveset *set, char *base, size_t bytes, size_t step)
{
	size_t count = bytes / step;

	set->pages = calloc(count, sizeof(*set->pages));
	set->nodes = calloc(count, sizeof(*set->nodes));
	set->status = calloc(count, sizeof(*set->status));
	if (!set->pages || !set->nodes || !set->status)
		quit(EXIT_FAILED, "no memory for the addresses of %zu folios", count);
	moveset_aim(set, base, bytes, step);
}

void moveset_free(struct moveset *set)
{
	free(set->pages);
	free(set->nodes);
	free(set->status);
	*set = (struct moveset){ 0 };
}

/* Where a page fails the kernel stops, and leaves the status of its batch and all behind it. */
#define NOT_REACHED INT_MIN

static void prepare(struct moveset *set, int node)
{
	for (size_t i = 0; i < set->count; i++) {
		set->nodes[i] = node;
		set->status[i] = NOT_REACHED;
	}
}

static void call(struct moveset *set, size_t first, size_t count, int flags)
{
	/* A positive return counts pages left behind; their status says the same in more detail. */
	if (move_pages(0, count, set->pages + first, set->nodes + first, set->status + first, flags) < 0)
		/* ENOENT: nothing to move, all is there or absent. ENOMEM: the node is full. */
		if (errno != ENOENT && errno != ENOMEM)
			quit(EXIT_FAILED, "move_pages of %zu pages: %m", count);
}

/* The errno of an entry that is not on `node`; EAGAIN if only the call as a whole has failed. */
static int entry_error(int status)
{
	if (status == NOT_REACHED)
		return EAGAIN;
	/* A node's number: it is still where it was. */
	return status < 0 ? -status : EBUSY;
}

static void count_status(const struct moveset *set, int node, struct move_result *result)
{
	for (size_t i = 0; i < set->count; i++) {
		if (set->status[i] == node) {
			result->moved++;
		} else if (!result->failed++) {
			result->first_failed = i;
			result->first_error = entry_error(set->status[i]);
		}
	}
}

struct move_result moveset_move(struct moveset *set, int node, int flags, bool single)
{
	size_t step = single ? 1 : set->count;
	struct move_result result = { 0 };
	uint64_t start;

	prepare(set, node);
	start = clock_ns();
	for (size_t i = 0; i < set->count; i += step)
		call(set, i, step, flags);
	result.ns = clock_ns() - start;
	count_status(set, node, &result);
	return result;
}
