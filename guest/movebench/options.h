/* SPDX-License-Identifier: GPL-2.0 */
/* The command line of movebench. */
#ifndef MOVEBENCH_OPTIONS_H
#define MOVEBENCH_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "config.h"

enum kind { KIND_ANON, KIND_SHMEM, KIND_FILE, KIND_SWAPCACHE };

/* Ends with NULL. */
extern const char *const kind_names[];

struct options {
	size_t folio_bytes;
	size_t bytes;
	unsigned int samples;
	unsigned int warmup;
	int from;
	int to;
	enum kind kind;
	const char *file;
	bool one_per_call;
	bool read_only;
	unsigned int cpu_hogs;
	struct config configs[MAX_CONFIGS];
	size_t config_count;
};

/* Fill in *options or end the program with EXIT_USAGE. */
void options_parse(struct options *options, int argc, char **argv);

#endif
