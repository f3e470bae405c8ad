/* SPDX-License-Identifier: GPL-2.0 */
/* The command line of stallbench. */
#ifndef STALLBENCH_OPTIONS_H
#define STALLBENCH_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "config.h"

enum memory_kind { MEMORY_BASE, MEMORY_HUGE, MEMORY_TMPFS, MEMORY_HUGETLB };

struct options {
	size_t bytes;			/* that move */
	enum memory_kind memory;
	bool full;			/* the node that the memory goes to */
	bool waits;			/* time only the requests that slept */
	unsigned int threads;
	unsigned int request_pages;
	unsigned int load_ms;
	unsigned int pid;		/* of the process whose memory moves; 0: touch memory of our own */
	const char *command;		/* the load, with pid */
	unsigned int samples;
	unsigned int warmup;
	int from;
	int to;
	struct config_list configs;
};

/* Fill in *options or end the program with EXIT_USAGE. */
void options_parse(struct options *options, int argc, char **argv);

#endif
