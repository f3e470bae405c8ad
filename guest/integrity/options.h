/* SPDX-License-Identifier: GPL-2.0 */
/* The command line of integrity. */
#ifndef INTEGRITY_OPTIONS_H
#define INTEGRITY_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct options {
	unsigned int seconds;	/* minimum time under load */
	size_t bytes;		/* of all areas together */
	unsigned int threads;	/* workers of each stressor that has many */
	unsigned int movers;
	int nodes[2];
	const char *areas;	/* comma-separated names; NULL: all */
	const char *only;	/* comma-separated names; NULL: all */
	uint64_t seed;
	const char *file;	/* directory on a disk file system; NULL: none */
	const char *audit_by;	/* the migrator to select before the final checks; NULL: the current one */
	bool switch_migrator;
	bool control;		/* write to all control files */
	const char *module;	/* to load and unload; NULL: none */
	unsigned int switches;	/* minimum number */
	unsigned int rest_ms;	/* maximum, of a stressor between two operations */
	unsigned int in_runs;	/* minimum number of pages moved in runs */
	const char *copied_by;	/* the migrator that must copy a batch under load; NULL: none */
	unsigned int leak_kb;	/* tolerated decrease of free memory */
	bool ktap;
};

void options_parse(struct options *options, int argc, char **argv);

#endif
