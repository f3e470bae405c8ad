/* SPDX-License-Identifier: GPL-2.0 */
/* Workloads: ways to let pages move while they are read. A new one needs a file, and a line in workload.c. */
#ifndef TLBBENCH_WORKLOAD_H
#define TLBBENCH_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "options.h"
#include "target.h"

struct work {
	uint64_t ns;		/* its duration */
	uint64_t moved;		/* page moves that were done */
	uint64_t failed;	/* page moves that were asked for and not done */
	uint64_t calls;		/* of all processes, to munmap(2) and mprotect(2); 0: there are none */
	uint64_t calls_per_second; /* by each process */
};

struct workload {
	const char *name;
	size_t bytes;		/* the default; 0: compaction_bytes() */
	size_t moves;		/* the default; 0: the kernel decides how many pages move */
	uint64_t lookups;	/* the default, by each reader; 0: it has no lookups */
	unsigned int windows;	/* parts of the memory that are read in turn */
	bool holes;		/* every second page is freed */
	unsigned int order;	/* the default, of the folios that are allocated; 0: none are */
	unsigned int processes;	/* the default, that read; 0: the threads of one process do */
	bool tiered;		/* the nodes must be memory tiers; the memory is anonymous */
	unsigned int scan_ms;	/* interval of NUMA balancing, if tiered */
	/* The work while readers read the target; its sample is sample_print()'s. */
	struct work (*run)(const struct target *target, const struct options *options);
	/* Instead: all of a workload that has memory and a sample of its own. */
	void (*measure)(const struct options *options);
};

#define WORKLOAD_NAMES "move_pages, active, compaction, kcompactd, hinting, xslookup"

/* NULL if there is none of that name. */
const struct workload *workload_find(const char *name);

struct work run_moves(const struct target *target, const struct options *options);
struct work run_active(const struct target *target, const struct options *options);
struct work run_compaction(const struct target *target, const struct options *options);
struct work run_kcompactd(const struct target *target, const struct options *options);
struct work run_hinting(const struct target *target, const struct options *options);
void measure_lookups(const struct options *options);

/* Seven eighths of the free memory of a node. */
size_t compaction_bytes(int node);

#endif
