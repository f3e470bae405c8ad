/* SPDX-License-Identifier: GPL-2.0 */
/* The command line of movebench. */
#ifndef MOVEBENCH_OPTIONS_H
#define MOVEBENCH_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "config.h"

enum kind { KIND_ANON, KIND_SHMEM, KIND_FILE, KIND_SWAPCACHE, KIND_HUGETLB };

enum order { ORDER_SEQUENTIAL, ORDER_RANDOM, ORDER_EVERY8 };

/* They end with NULL. */
extern const char *const kind_names[];
extern const char *const order_names[];

/* One folio of so many is moved. */
static inline size_t order_step(enum order order)
{
	return order == ORDER_EVERY8 ? 8 : 1;
}

struct options {
	size_t folio_bytes;
	size_t bytes;			/* that are moved */
	unsigned int samples;
	unsigned int warmup;
	int from;
	int to;
	enum kind kind;
	const char *file;
	enum order order;
	size_t pages_per_call;		/* addresses in one call; 0: all */
	bool read_only;
	unsigned int settle_ms;		/* to sleep before each move */
	unsigned int unmeasured;	/* moves there and back before each sample */
	unsigned int cpu_hogs;
	struct config_list configs;
};

/* Fill in *options or end the program with EXIT_USAGE. */
void options_parse(struct options *options, int argc, char **argv);

#endif
