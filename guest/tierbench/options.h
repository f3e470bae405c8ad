/* SPDX-License-Identifier: GPL-2.0 */
/* The command line of tierbench. */
#ifndef TIERBENCH_OPTIONS_H
#define TIERBENCH_OPTIONS_H

#include <stddef.h>

#include "config.h"

enum policy { POLICY_NUMAB, POLICY_DAMON, POLICY_RECLAIM };

struct options {
	enum policy policy;
	unsigned int tenants;
	size_t bytes;			/* of all tenants together */
	size_t hot_bytes;		/* of each tenant's hot set */
	unsigned int load_ms;
	unsigned int shift_ms;
	unsigned int pid;		/* of the process whose memory moves; 0: start tenants */
	const char *command;		/* the load, with pid */
	unsigned int samples;
	unsigned int warmup;
	int from;
	int to;
	struct config_list configs;
};

/* Fill in *options or end the program with EXIT_USAGE. */
void options_parse(struct options *options, int argc, char **argv);

/* The memory of one tenant, in bytes: whole hot sets. */
size_t options_each_bytes(const struct options *options);

/* The name of a policy. */
const char *policy_name(enum policy policy);

#endif
