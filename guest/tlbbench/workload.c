// SPDX-License-Identifier: GPL-2.0
#include "workload.h"

#include <string.h>

#include "util.h"

#define MIB ((size_t)1 << 20)

static const struct workload workloads[] = {
	{
		.name = "move_pages", .bytes = 32 * MIB, .moves = 16384, .windows = 1, .run = run_moves,
	}, {
		.name = "active", .bytes = 4 * MIB, .moves = 2048, .processes = 4, .run = run_active,
	}, {
		.name = "compaction", .windows = 1, .holes = true, .run = run_compaction,
	}, {
		.name = "kcompactd", .moves = 4096, .windows = 1, .holes = true, .order = 9, .run = run_kcompactd,
	}, {
		.name = "hinting", .bytes = 128 * MIB, .moves = 32768, .windows = 2, .tiered = true,
		/* The shortest interval that the kernel itself uses. Each scan flushes TLBs, whatever migrates. */
		.scan_ms = 1000, .run = run_hinting,
	}, {
		.name = "xslookup", .bytes = 256 * MIB, .lookups = 100000, .tiered = true,
		/* A tenth of that, because a guest has minutes where a machine has hours. */
		.scan_ms = 100, .measure = measure_lookups,
	},
};

const struct workload *workload_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(workloads); i++)
		if (!strcmp(workloads[i].name, name))
			return &workloads[i];
	return NULL;
}
