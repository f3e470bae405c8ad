/* SPDX-License-Identifier: GPL-2.0 */
/* What the kernel counts of migration and of the TLB flushes that it costs. */
#ifndef GUEST_COUNTERS_H
#define GUEST_COUNTERS_H

#include <stddef.h>
#include <stdint.h>

#include "json.h"

#define MOST_EVENTS 64

struct counters {
	size_t count;
	struct {
		char name[48];
		uint64_t value;
	} event[MOST_EVENTS];
};

/*
 * All counters there are: "ipis", the TLB shootdown interrupts of all CPUs; those of /proc/vmstat
 * by their names; those of migrc with "migrc_" before. One that this kernel lacks is left out.
 */
void counters_read(struct counters *events);

/* How far a counter went between two readings; 0 if the kernel lacks it. */
uint64_t counters_delta(const struct counters *before, const struct counters *after, const char *name);

/* Every counter's way between two readings, its key with `prefix` before. */
void counters_print(struct json *json, const char *prefix, const struct counters *before,
		  const struct counters *after);

#endif
