// SPDX-License-Identifier: GPL-2.0
/* Locks and unlocks memory, which moves its folios between LRU lists while others isolate them. */
#include "stressors.h"

#include <sys/mman.h>

#include "../span.h"

#define MOST_PAGES 600	/* more than one THP, and parts of two */

static bool act(struct actor *actor)
{
	struct span span;
	bool locked;

	if (!span_pick(actor, &span, ~0u, 0, MOST_PAGES))
		return false;
	/* Fails half done where another actor has taken all access away, so it is undone either way. */
	locked = !mlock(span_address(&span), span_bytes(&span));
	actor_pause(actor);
	return !munlock(span_address(&span), span_bytes(&span)) && locked;
}

const struct antagonist mlock_antagonist = { .name = "mlock", .act = act };
