/* SPDX-License-Identifier: GPL-2.0 */
/* What the machine has done so far: time of one CPU, counters of the kernel, pages that migrators copied. */
#ifndef COMPACTBENCH_USAGE_H
#define COMPACTBENCH_USAGE_H

#include <stdint.h>

#include "counters.h"
#include "json.h"
#include "migration.h"

struct usage {
	/* Of the CPU, in ticks of /proc/stat */
	uint64_t user;
	uint64_t system;
	uint64_t idle;
	struct counters counters;
	/* Of compaction, in the order of the kernel's list of migrators */
	uint64_t copied_pages[MAX_MIGRATORS];
	uint64_t run_pages;	/* moved in runs */
};

void usage_read(struct usage *usage, int cpu);

/*
 * The difference between two readings: user_ms, system_ms and idle_ms of the CPU, the kernel's counters, and, if it has
 * migrators, copied_NAME_pages of each and moved_in_runs.
 */
void usage_print(struct json *json, const struct usage *before, const struct usage *after);

#endif
