/* SPDX-License-Identifier: GPL-2.0 */
/* Tenants: processes that touch memory of their own, each on a CPU and in a control group of its own. */
#ifndef TIERBENCH_TENANTS_H
#define TIERBENCH_TENANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "histogram.h"

#define MAX_TENANTS 64

struct tenants_memory {
	size_t bytes;		/* of each tenant */
	size_t hot_bytes;	/* of them, in its hot set */
	int renew_on;		/* the only node it allocates on, where its next hot set gets new pages; -1: none */
};

/*
 * Start so many tenants. Returns when each has written all of its memory, and rests. The end of the program ends them
 * and removes their groups.
 */
void tenants_start(unsigned int count, const struct tenants_memory *each, bool cgroups);

/* From now on they touch their memory. */
void tenants_resume(void);

/* Move the hot set of each. */
void tenants_shift(void);

/* From its return on they rest. */
void tenants_pause(void);

/* While they rest: how long each touch of a tenant took since the last resume. */
const struct histogram *tenant_histogram(unsigned int tenant);

/* Ends the program with EXIT_FAILED if a tenant has ended, because it read something wrong and has said so. */
void tenants_check(void);

#endif
