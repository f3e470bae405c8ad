// SPDX-License-Identifier: GPL-2.0
/* Read and write pages through their mapping: a store to a page under migration must not be lost. */
#include "stressors.h"

#include "../span.h"

const struct stressor read_stressor = {
	.name = "read", .run_once = span_check_any, .many = true,
};

static bool store(struct worker *worker)
{
	struct span span;

	/* Pages that all writers store to would never be identical. */
	if (!span_pick_claimed(worker, &span, ~0u, AREA_MERGEABLE, SPAN_PAGES))
		return false;
	if (span_check(&span, "write")) {
		span_stamp(&span);
		span_check(&span, "write");
	}
	span_release(&span);
	return true;
}

const struct stressor write_stressor = {
	.name = "write", .run_once = store, .many = true,
};
