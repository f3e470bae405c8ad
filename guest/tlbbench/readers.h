/* SPDX-License-Identifier: GPL-2.0 */
/* Threads that read memory all the time, so that their CPUs' TLBs hold it, and check what they read. */
#ifndef TLBBENCH_READERS_H
#define TLBBENCH_READERS_H

#include <stdint.h>

#include "target.h"

/*
 * The n-th thread is pinned to the n-th CPU. They read the first of `windows` equal parts of the
 * memory. Returns when each has read it once.
 */
void readers_start(const struct target *target, unsigned int count, unsigned int windows);

/* Read another part from now on. */
void readers_shift(unsigned int window);

/* Pages read so far, by all of them. */
uint64_t readers_reads(void);

void readers_stop(void);

#endif
