/* SPDX-License-Identifier: GPL-2.0 */
/* The kernel's counters of migration and of the TLB flushes that it needs. */
#ifndef GUEST_COUNTERS_H
#define GUEST_COUNTERS_H

#include <stddef.h>
#include <stdint.h>

#include "json.h"

#define MAX_COUNTERS 64

struct counters {
	size_t count;
	struct {
		char name[48];
		uint64_t value;
	} counter[MAX_COUNTERS];
};

/*
 * Read all counters that this kernel has: "ipis", the TLB shootdown interrupts of all CPUs; those of /proc/vmstat by
 * their names; "moved_for_" and a reason of migration, the pages that moved for it; those of migrc by their names with
 * "migrc_" before.
 */
void counters_read(struct counters *counters);

/*
 * The same, between two migrations: the kernel counts a move in two places, one after the other, so the reading is
 * repeated until the pages of all reasons add up to pgmigrate_success, or `tries` were in vain.
 */
void counters_read_at_rest(struct counters *counters, unsigned int tries);

/* A counter; 0 if the kernel lacks it. */
uint64_t counters_value(const struct counters *counters, const char *name);

/*
 * Add the number in each file of a directory, by its name with `prefix` before; none if the kernel has no such
 * directory.
 */
void counters_read_dir(struct counters *counters, const char *prefix, const char *path);

/* The growth of a counter between two readings; 0 if the kernel lacks it. */
uint64_t counters_delta(const struct counters *before, const struct counters *after, const char *name);

/* The growth of each counter between two readings, its key with `prefix` before. */
void counters_print(struct json *json, const char *prefix, const struct counters *before,
		    const struct counters *after);

#endif
