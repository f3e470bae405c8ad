// SPDX-License-Identifier: GPL-2.0
/*
 * Let NUMA balancing scan the page tables: it makes entries PROT_NONE among those that workers write,
 * and migrates pages at the next access, beside the movers.
 */
#include "stressors.h"

#include "../span.h"
#include "tiering.h"

#define SCAN_MS 20

static const char *prepare(struct test_memory *mem)
{
	(void)mem;
	return tiering_balance(SCAN_MS) ? NULL : "no NUMA balancing (CONFIG_NUMA_BALANCING)";
}

/* The kernel scans in each thread. The worker uses pages, so that their entries are restored. */
const struct stressor numahint_stressor = {
	.name = "numahint", .prepare = prepare, .run_once = span_check_any,
	.vmstat_counter = { "numa_pte_updates" },
};
