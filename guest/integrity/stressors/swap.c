// SPDX-License-Identifier: GPL-2.0
/* Swap memory out; the next access brings it back through the swap cache. */
#include "stressors.h"

#include <sys/mman.h>

#include "../report.h"
#include "../span.h"
#include "blockdev.h"

#define MOST_PAGES 256
#define LARGEST ((size_t)64 << 20)	/* the device is in memory and takes this much of it */

static struct swapdev swap;

static const char *prepare(struct test_memory *mem)
{
	size_t bytes = mem->options->bytes / 2 & ~(PAGE_BYTES - 1);

	return swapdev_open(&swap, bytes < LARGEST ? bytes : LARGEST);
}

static bool run_once(struct worker *worker)
{
	struct span span;

	worker_pause(worker);
	/* Without a claim, because swap must be invisible to users of the pages. Fails if pages are locked. */
	return span_pick(worker, &span, AREA_ANON | AREA_SHMEM, 0, MOST_PAGES) &&
	       !madvise(span_address(&span), span_bytes(&span), MADV_PAGEOUT);
}

static void finish(struct test_memory *mem)
{
	if (!swapdev_close(&swap))
		report_broken(mem, "swap", "swapoff: %m");
}

const struct stressor swap_stressor = {
	.name = "swap", .prepare = prepare, .run_once = run_once, .finish = finish, .vmstat_counter = { "pswpout" },
};
