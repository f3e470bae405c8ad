/* SPDX-License-Identifier: GPL-2.0 */
/* The state of the machine before the work, right after it, and once no flush is deferred any more; and the sample. */
#ifndef TLBBENCH_SAMPLE_H
#define TLBBENCH_SAMPLE_H

#include <stdint.h>

#include "counters.h"
#include "workload.h"

struct state {
	struct counters counters;
	uint64_t free_from_kb;	/* MemFree of --from */
	uint64_t free_to_kb;
	uint64_t free_kb;	/* of all nodes, and on per-CPU lists */
};

/* Begin a sample: flushes that the preparation deferred, and the memory in quarantine for them, do not belong to it. */
void sample_begin(struct state *before, const struct options *options);

/*
 * End a sample whose work is over, and print it. Deferred flushes belong to the work that deferred them, so the kernel
 * does them now. Counters grow to the end of the work, those with settled_ to the end of these flushes. If no page has
 * moved, the program ends with EXIT_FAILED.
 */
void sample_end(const struct state *before, struct work *work, const struct options *options);

#endif
