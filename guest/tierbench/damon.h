/* SPDX-License-Identifier: GPL-2.0 */
/*
 * DAMON, by its files in sysfs (Documentation/admin-guide/mm/damon/usage.rst), set up as samples/damon/mtier.c does.
 * One kdamond monitors the memory of the slow node, and its scheme migrate_hot moves accessed pages to the fast node
 * while that has room; another monitors the fast node, and its scheme migrate_cold moves other pages to the slow node
 * while the fast one has little room.
 */
#ifndef TIERBENCH_DAMON_H
#define TIERBENCH_DAMON_H

#include <stdint.h>

/* Pages that each scheme has moved since the start. */
struct damon_moved {
	uint64_t hot;
	uint64_t cold;
};

/* Ends the program with EXIT_MISSING if the kernel has no DAMON. */
void damon_require(void);

/* Until the program exits. Ends it with EXIT_FAILED if the kernel refuses a value. */
void damon_start(int fast, int slow);

struct damon_moved damon_moved(void);

#endif
