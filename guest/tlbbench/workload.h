/* SPDX-License-Identifier: GPL-2.0 */
/* What makes pages move while they are read. A new one: a file, and a line in workload.c. */
#ifndef TLBBENCH_WORKLOAD_H
#define TLBBENCH_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "options.h"
#include "target.h"

struct work {
	uint64_t ns;		/* what it took */
	uint64_t moved;		/* page moves that were done */
	uint64_t failed;	/* that were asked for and not done */
};

struct workload {
	const char *name;
	size_t bytes;		/* where the options name none; 0: see compaction_bytes() */
	size_t moves;		/* where the options name none; 0: cannot be chosen */
	unsigned int windows;	/* parts of the memory that are read in turn */
	bool holes;		/* every second page is freed */
	bool tiered;		/* the nodes must be memory tiers; the memory is writable */
	unsigned int scan_ms;	/* of NUMA balancing, if tiered */
	uint64_t lookups;	/* by each reader, where the options name none; 0: there are none */
	void (*prepare)(const struct target *target, const struct options *options);	/* or NULL */
	struct work (*run)(const struct target *target, const struct options *options);
	/* Instead of the two, for a workload with memory and a sample of its own. */
	void (*measure)(const struct options *options);
};

#define WORKLOAD_NAMES "move_pages, single, compaction, hinting, xslookup"

/* NULL if there is none of that name. */
const struct workload *workload_find(const char *name);

struct work run_move_pages(const struct target *target, const struct options *options);
struct work run_single(const struct target *target, const struct options *options);
struct work run_compaction(const struct target *target, const struct options *options);
struct work run_hinting(const struct target *target, const struct options *options);
void measure_lookups(const struct options *options);

/* Three quarters of what is free on the node. */
size_t compaction_bytes(int node);

/* Demote all of it. */
void prepare_hinting(const struct target *target, const struct options *options);

#endif
