// SPDX-License-Identifier: GPL-2.0
/* Lock and unlock memory, which moves its folios between LRU lists while migration isolates them. */
#include "stressors.h"

#include <sys/mman.h>

#include "../span.h"

#define MOST_PAGES 600	/* more than one THP, and parts of two */

static bool run_once(struct worker *worker)
{
	struct span span;
	bool locked;

	if (!span_pick(worker, &span, ~0u, 0, MOST_PAGES))
		return false;
	/* mlock(2) fails halfway at pages that mprotect has made inaccessible, so undo it in any case. */
	locked = !mlock(span_address(&span), span_bytes(&span));
	worker_pause(worker);
	return !munlock(span_address(&span), span_bytes(&span)) && locked;
}

const struct stressor mlock_stressor = { .name = "mlock", .run_once = run_once };
