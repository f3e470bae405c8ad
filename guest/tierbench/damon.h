/* SPDX-License-Identifier: GPL-2.0 */
/*
 * DAMON, by its files in sysfs (Documentation/admin-guide/mm/damon/usage.rst): one kdamond monitors the address spaces
 * of some processes, and has two schemes. migrate_hot moves accessed memory to the fast node while that has room,
 * migrate_cold moves other memory to the slow one while the fast one has little room.
 */
#ifndef TIERBENCH_DAMON_H
#define TIERBENCH_DAMON_H

#include <stdint.h>
#include <sys/types.h>

/* Pages that each scheme has moved since the start. */
struct damon_moved {
	uint64_t hot;
	uint64_t cold;
};

/* Ends the program with EXIT_MISSING if the kernel has no DAMON, or cannot monitor virtual addresses. */
void damon_require(void);

/* Until the program exits. Ends it with EXIT_FAILED if the kernel refuses a value. */
void damon_start(const pid_t *pids, unsigned int count, int fast, int slow);

struct damon_moved damon_moved(void);

#endif
