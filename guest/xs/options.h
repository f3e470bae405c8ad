/* SPDX-License-Identifier: GPL-2.0 */
/* What xslookup was asked to do. */
#ifndef XS_OPTIONS_H
#define XS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "migrc.h"

struct options {
	size_t bytes;
	unsigned int threads;
	uint64_t lookups;	/* by each thread */
	unsigned int round;	/* which ones */
	int top;
	int low;
	bool tiered;
	struct migrc_wish migrc;
};

/* Fill in *options or end the program with EXIT_USAGE. */
void options_parse(struct options *options, int argc, char **argv);

#endif
