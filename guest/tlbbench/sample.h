/* SPDX-License-Identifier: GPL-2.0 */
/* The state of the machine before the work, right after it, and once no flush is pending. */
#ifndef TLBBENCH_SAMPLE_H
#define TLBBENCH_SAMPLE_H

#include <stdint.h>

#include "counters.h"
#include "workload.h"

struct state {
	struct counters counters;
	uint64_t reads;
	uint64_t free_from_kb;	/* MemFree of --from */
	uint64_t free_to_kb;
	uint64_t free_kb;	/* of all nodes, and on per-CPU lists */
};

void state_read(struct state *state, const struct options *options);

/*
 * Wait as long as the options say. Returns after how many ms the quarantine was empty; -1 if it never was.
 */
int64_t settle(const struct options *options);

/* Print the sample. Counters grow from `before` to `after`, those with settled_ to `settled`. */
void sample_print(const struct options *options, const struct work *work, const struct state *before,
		  const struct state *after, const struct state *settled, int64_t drained_ms);

#endif
