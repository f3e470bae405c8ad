/* SPDX-License-Identifier: GPL-2.0 */
/* What tlbbench was asked to do. */
#ifndef TLB_OPTIONS_H
#define TLB_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

#include "target.h"
#include "migrc.h"

struct workload;

struct options {
	const struct workload *workload;
	enum target_kind kind;
	const char *kind_name;
	size_t bytes;
	const char *file;
	size_t moves;
	int from;
	int to;
	unsigned int readers;
	unsigned int settle_ms;
	unsigned int limit_s;
	unsigned int round;
	struct migrc_wish migrc;
};

/* Fill in *options or end the program with EXIT_USAGE. */
void options_parse(struct options *options, int argc, char **argv);

#endif
