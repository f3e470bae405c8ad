/* SPDX-License-Identifier: GPL-2.0 */
/* Threads that read memory all the time, so that the TLBs of their CPUs hold it, and check each word that they read. */
#ifndef TLBBENCH_READERS_H
#define TLBBENCH_READERS_H

#include "target.h"

/*
 * Start `count` threads, the n-th pinned to the n-th CPU. They read the first of `windows` equal parts of the memory.
 * Returns when each thread has read it once.
 */
void readers_start(const struct target *target, unsigned int count, unsigned int windows);

/* From now on all threads read another part. */
void readers_shift(unsigned int window);

void readers_stop(void);

#endif
