// SPDX-License-Identifier: GPL-2.0
/* Remove write access, or all access, from memory and restore it. */
#include "stressors.h"

#include <sys/mman.h>

#include "../span.h"

static bool protect(const struct span *span, int access)
{
	return !mprotect(span_address(span), span_bytes(span), access);
}

static bool run_once(struct worker *worker)
{
	struct span span;

	if (!span_pick_claimed(worker, &span, ~0u, AREA_HUGETLB, SPAN_PAGES))
		return false;
	if (!worker_random(worker, 2)) {
		if (protect(&span, PROT_NONE))
			worker_pause(worker);
	} else if (protect(&span, PROT_READ)) {
		span_check(&span, "mprotect");
		worker_pause(worker);
		span_check(&span, "mprotect");
	}
	/* Fails only without memory for a VMA; until it succeeds no worker may access the pages. */
	while (!protect(&span, PROT_READ | PROT_WRITE))
		worker_pause(worker);
	if (span_check(&span, "mprotect") && !(span.area->traits & AREA_MERGEABLE))
		span_stamp(&span);
	span_release(&span);
	return true;
}

const struct stressor mprotect_stressor = { .name = "mprotect", .run_once = run_once };
