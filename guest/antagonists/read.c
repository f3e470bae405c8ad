// SPDX-License-Identifier: GPL-2.0
/* Reads pages through their mapping. */
#include "antagonists.h"

#include "../check/span.h"

static bool act(struct actor *actor)
{
	struct span span;

	if (!span_pick_claimed(actor, &span, ~0u, 0, SPAN_PAGES))
		return false;
	span_check(&span, "read");
	span_release(&span);
	return true;
}

const struct antagonist read_antagonist = {
	.name = "read", .act = act, .many = true,
};
