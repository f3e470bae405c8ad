// SPDX-License-Identifier: GPL-2.0
/*
 * Let KSM merge identical pages, and break the merge by writing. Pages that are written in the same
 * tenth of a second get the same generation, and so become identical again.
 */
#include "stressors.h"

#include <sys/mman.h>

#include "../span.h"
#include "sysfs.h"

#define EPOCH_NS UINT64_C(100000000)

static uint64_t start_ns;

static bool advise(const struct test_memory *mem, int advice)
{
	for (size_t i = 0; i < mem->count; i++) {
		const struct area *area = &mem->areas[i];

		if (area->traits & AREA_MERGEABLE)
			return !madvise(area->base, area->pages * PAGE_BYTES, advice);
	}
	return false;
}

static const char *prepare(struct test_memory *mem)
{
	start_ns = clock_ns();
	return ksm_scan_fast(true, mem->options->rest_ms) && advise(mem, MADV_MERGEABLE) ? NULL : "no KSM (CONFIG_KSM), or no area for it";
}

static bool run_once(struct worker *worker)
{
	/* ksmd merges no page that changed between two of its scans, so write few. */
	uint32_t epoch = (clock_ns() - start_ns) / EPOCH_NS;
	struct span span;

	worker_pause(worker);
	if (!span_pick_claimed(worker, &span, AREA_MERGEABLE, 0, 2))
		return false;
	if (span_check(&span, "ksm")) {
		span_stamp_as(&span, epoch);
		span_check(&span, "ksm");
	}
	span_release(&span);
	return true;
}

static void finish(struct test_memory *mem)
{
	advise(mem, MADV_UNMERGEABLE);
}

const struct stressor ksm_stressor = {
	.name = "ksm", .prepare = prepare, .run_once = run_once, .finish = finish,
	/* Counts write faults on merged pages, so it shows that pages were merged. */
	.vmstat_counter = { "cow_ksm" },
};
