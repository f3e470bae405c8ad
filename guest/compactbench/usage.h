/* SPDX-License-Identifier: GPL-2.0 */
/* What the machine has done so far: time of a CPU and of a thread, counters, pages that migrators copied. */
#ifndef COMPACTBENCH_USAGE_H
#define COMPACTBENCH_USAGE_H

#include <stdint.h>
#include <time.h>

#include "counters.h"
#include "json.h"
#include "migration.h"

struct usage {
	/* Of the CPU, in ticks of /proc/stat */
	uint64_t user;
	uint64_t system;
	uint64_t idle;
	uint64_t thread_ns;	/* CPU time of the thread that compacts */
	struct counters counters;
	struct migration_pages pages;	/* those that migrators copied for compaction */
};

/*
 * The readings before and after the work. `thread` is the CPU clock of the thread that compacts; it may be this one, so
 * its clock is read last before the work, and first after it.
 */
void usage_begin(struct usage *usage, int cpu, clockid_t thread);
void usage_end(struct usage *usage, int cpu, clockid_t thread);

/*
 * The difference between two readings: user_ms, system_ms and idle_ms of the CPU, thread_ns, the kernel's counters, and
 * the keys of migration_pages_print().
 */
void usage_print(struct json *json, const struct usage *before, const struct usage *after);

#endif
