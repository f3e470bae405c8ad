// SPDX-License-Identifier: GPL-2.0
/* Moves pages to and fro, in batches large and small, and asks nobody. */
#include "mover.h"

#include <numaif.h>

#include "moveset.h"
#include "span.h"

static size_t largest_area_pages(const struct arena *arena)
{
	size_t largest = 0;

	for (size_t i = 0; i < arena->count; i++)
		if (arena->areas[i].pages > largest)
			largest = arena->areas[i].pages;
	return largest;
}

static void pick_batch(struct actor *actor, struct span *span)
{
	/* Large batches are what is new; small ones hit single pages at odd moments. */
	uint32_t most = actor_random(actor, 4) ? UINT32_MAX : SPAN_PAGES;

	span_pick(actor, span, ~0u, 0, most);
}

/* The node that the span's first page is not on; either if the page is not mapped. */
static int other_node(struct actor *actor, const struct span *span)
{
	const int *nodes = actor->arena->options->nodes;
	void *page = span_address(span);
	int where;

	if (move_pages(0, 1, &page, NULL, &where, 0) || where < 0)
		return nodes[actor_random(actor, 2)];
	return where == nodes[0] ? nodes[1] : nodes[0];
}

static bool move(struct actor *actor)
{
	/* Each mover has its own arrays, for as long as it lives. */
	static _Thread_local struct moveset set;
	struct arena *arena = actor->arena;
	struct span span;
	size_t step = PAGE_BYTES;

	if (!set.pages)
		moveset_init(&set, NULL, largest_area_pages(arena) * PAGE_BYTES, PAGE_BYTES);
	pick_batch(actor, &span);
	/* One address a folio makes the largest batches; one a page also names tail pages. */
	if (actor_random(actor, 4) && span.area->folio_bytes <= span_bytes(&span))
		step = span.area->folio_bytes;
	moveset_aim(&set, span_address(&span), span_bytes(&span), step);
	moveset_move(&set, other_node(actor, &span), MPOL_MF_MOVE_ALL, false);
	atomic_fetch_add(&arena->moves, 1);
	return true;
}

const struct antagonist mover = {
	.name = "move", .act = move, .eager = true, .proof = { "pgmigrate_success" },
};
