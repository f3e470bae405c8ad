/* SPDX-License-Identifier: GPL-2.0 */
/* The command line of tlbbench. */
#ifndef TLBBENCH_OPTIONS_H
#define TLBBENCH_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "migration.h"
#include "target.h"

struct workload;

struct options {
	const struct workload *workload;
	enum target_kind kind;
	size_t bytes;
	const char *file;
	size_t moves;
	uint64_t lookups;	/* by each reader */
	int from;
	int to;
	unsigned int readers;
	unsigned int processes;
	unsigned int calls_per_second;
	unsigned int order;
	unsigned int limit_s;
	unsigned int round;
	bool flat;
	struct migrc_config migrc;
};

/* Fill in *options or end the program with EXIT_USAGE. */
void options_parse(struct options *options, int argc, char **argv);

#endif
