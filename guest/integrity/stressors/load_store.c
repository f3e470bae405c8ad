// SPDX-License-Identifier: GPL-2.0
/* Reads pages through their mapping, and writes them: a store that hits the page while it moves must not be lost. */
#include "stressors.h"

#include "../span.h"

static bool load(struct actor *actor)
{
	struct span span;

	if (!span_pick_claimed(actor, &span, ~0u, 0, SPAN_PAGES))
		return false;
	span_check(&span, "read");
	span_release(&span);
	return true;
}

const struct antagonist read_antagonist = {
	.name = "read", .act = load, .many = true,
};

static bool store(struct actor *actor)
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
	.name = "write", .act = store, .many = true,
};
