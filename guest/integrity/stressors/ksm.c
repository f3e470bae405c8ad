// SPDX-License-Identifier: GPL-2.0
/*
 * Lets the kernel merge twins, and parts them again by writing. Twins written in the same tenth of
 * a second get the same generation, so they come to be alike again.
 */
#include "stressors.h"

#include <sys/mman.h>

#include "../span.h"
#include "sysfs.h"

#define EPOCH_NS UINT64_C(100000000)

static uint64_t start_ns;

static const struct area *twins(const struct arena *arena)
{
	for (size_t i = 0; i < arena->count; i++)
		if (arena->areas[i].traits & AREA_TWINS)
			return &arena->areas[i];
	return NULL;
}

static bool advise(const struct arena *arena, int advice)
{
	const struct area *area = twins(arena);

	return !madvise(area->base, area->pages * PAGE_BYTES, advice);
}

static const char *prepare(struct arena *arena)
{
	start_ns = clock_ns();
	return ksm_scan_fast(true) && advise(arena, MADV_MERGEABLE) ? NULL : "no KSM (CONFIG_KSM)";
}

static bool act(struct actor *actor)
{
	/* A page that changes between two looks of ksmd is not merged, so change few. */
	uint32_t epoch = (clock_ns() - start_ns) / EPOCH_NS;
	struct span span;

	actor_pause(actor);
	if (!span_pick_claimed(actor, &span, AREA_TWINS, 0, 2))
		return false;
	if (span_check(&span, "ksm")) {
		span_stamp_as(&span, epoch);
		span_check(&span, "ksm");
	}
	span_release(&span);
	return true;
}

static void finish(struct arena *arena)
{
	advise(arena, MADV_UNMERGEABLE);
}

const struct antagonist ksm_antagonist = {
	.name = "ksm", .prepare = prepare, .act = act, .finish = finish,
	/* A fault that parts a merged page: proof that pages were merged. */
	.proof = { "cow_ksm" },
};
