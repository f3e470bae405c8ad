/* SPDX-License-Identifier: GPL-2.0 */
/* What integrity was asked to do. */
#ifndef INTEGRITY_OPTIONS_H
#define INTEGRITY_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct options {
	unsigned int seconds;	/* the least time under load */
	size_t bytes;		/* of all areas together */
	unsigned int threads;	/* of each stressor that can be many */
	unsigned int movers;
	int nodes[2];
	const char *only;	/* comma-separated names; NULL: all */
	uint64_t seed;
	const char *file;	/* directory on a disk file system; NULL: none */
	const char *audit_by;	/* a migrator, or NULL: as it is */
	bool switch_migrator;
	const char *module;	/* to load and unload; NULL: none */
	unsigned int switches;	/* the least number of them */
	unsigned int leak_kb;
	bool ktap;
};

void options_parse(struct options *options, int argc, char **argv);

#endif
