// SPDX-License-Identifier: GPL-2.0
/* Takes the right to write, or all access, from memory and gives it back. */
#include "stressors.h"

#include <sys/mman.h>

#include "../span.h"

static bool protect(const struct span *span, int access)
{
	return !mprotect(span_address(span), span_bytes(span), access);
}

static void read_only(struct actor *actor, const struct span *span)
{
	if (!protect(span, PROT_READ))
		return;
	span_check(span, "mprotect");
	actor_pause(actor);
	span_check(span, "mprotect");
}

static void no_access(struct actor *actor, const struct span *span)
{
	if (protect(span, PROT_NONE))
		actor_pause(actor);
}

static bool act(struct actor *actor)
{
	struct span span;

	if (!span_pick_claimed(actor, &span, ~0u, 0, SPAN_PAGES))
		return false;
	if (actor_random(actor, 2))
		read_only(actor, &span);
	else
		no_access(actor, &span);
	/* Fails only for want of memory for a VMA, and nobody may touch the pages until it works. */
	while (!protect(&span, PROT_READ | PROT_WRITE))
		actor_pause(actor);
	if (span_check(&span, "mprotect") && !(span.area->traits & AREA_TWINS))
		span_stamp(&span);
	span_release(&span);
	return true;
}

const struct antagonist mprotect_antagonist = { .name = "mprotect", .act = act };
