// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Counters
 *
 * /sys/kernel/mm/migration/stats/runs/ has a file for each counter. moved
 * counts the folios that were migrated in runs. The others count folios that
 * were left to the code for single folios, by cause: a folio is counted each
 * time. A batch adds its counts at its end, so plain atomics are cheap enough.
 */

#include <linux/atomic.h>

#include "internal.h"

atomic64_t ferry_run_stats[FERRY_RUN_NR_STATS];

/**
 * ferry_run_count() - add the counts of a batch
 * @counts: one for each &enum ferry_run_stat
 *
 * Context: any.
 */
void ferry_run_count(const unsigned int *counts)
{
	unsigned int i;

	for (i = 0; i < FERRY_RUN_NR_STATS; i++)
		if (counts[i])
			atomic64_add(counts[i], &ferry_run_stats[i]);
}
