/* SPDX-License-Identifier: GPL-2.0 */
/* The command line of compactbench. */
#ifndef COMPACTBENCH_OPTIONS_H
#define COMPACTBENCH_OPTIONS_H

#include <stdint.h>

#include "config.h"

enum workload { WORKLOAD_IDLE, WORKLOAD_BUSY, WORKLOAD_PROACTIVE };

extern const char *const workload_names[];

struct options {
	enum workload workload;
	unsigned int order;		/* of the blocks */
	unsigned int blocks;		/* to allocate in a sample */
	unsigned int samples;
	unsigned int warmup;
	unsigned int limit_s;		/* how long to wait for kcompactd */
	int node;
	int cpu;
	struct config_list configs;
};

/* Fill in *options or end the program with EXIT_USAGE. */
void options_parse(struct options *options, int argc, char **argv);

#endif
