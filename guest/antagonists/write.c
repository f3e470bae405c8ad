// SPDX-License-Identifier: GPL-2.0
/* Writes pages through their mapping: a store that hits the page while it moves must not be lost. */
#include "antagonists.h"

#include "../check/span.h"

static bool act(struct actor *actor)
{
	struct span span;

	/* Twins that everybody writes would never be alike. */
	if (!span_pick_claimed(actor, &span, ~0u, AREA_TWINS, SPAN_PAGES))
		return false;
	if (span_check(&span, "write")) {
		span_stamp(&span);
		span_check(&span, "write");
	}
	span_release(&span);
	return true;
}

const struct antagonist write_antagonist = {
	.name = "write", .act = act, .many = true,
};
