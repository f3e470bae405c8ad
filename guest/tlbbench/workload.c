// SPDX-License-Identifier: GPL-2.0
#include "workload.h"

#include <string.h>

#define MIB ((size_t)1 << 20)

static const struct workload workloads[] = {
	{ .name = "move_pages", .bytes = 32 * MIB, .moves = 16384, .windows = 1, .run = run_move_pages },
	{ .name = "single", .bytes = 8 * MIB, .moves = 512, .windows = 1, .run = run_single },
	{ .name = "compaction", .windows = 1, .holes = true, .run = run_compaction },
	{ .name = "hinting", .bytes = 128 * MIB, .moves = 32768, .windows = 2, .tiered = true,
	  /* The fastest pace of the kernel's own. Each scan flushes TLBs, which cannot be avoided. */
	  .scan_ms = 1000, .prepare = prepare_hinting, .run = run_hinting },
	{ .name = "xslookup", .bytes = 256 * MIB, .lookups = 100000, .tiered = true,
	  /* Ten times that pace, since the guest has minutes. */
	  .scan_ms = 100, .measure = measure_lookups },
};

const struct workload *workload_find(const char *name)
{
	for (size_t i = 0; i < sizeof(workloads) / sizeof(*workloads); i++)
		if (!strcmp(workloads[i].name, name))
			return &workloads[i];
	return NULL;
}
