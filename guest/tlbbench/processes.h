/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Processes that share the memory. Each reads it all the time in one thread and checks what it reads; another thread
 * allocates, protects and frees memory of its own, as servers do. Its calls to munmap(2) and mprotect(2) interrupt the
 * CPU of the reader to flush its TLB.
 */
#ifndef TLBBENCH_PROCESSES_H
#define TLBBENCH_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>

#include "target.h"

#define MAX_PROCESSES 64

/*
 * Start `count` processes of two threads, which are pinned to neighbouring CPUs. Returns when each thread has read
 * all of the memory once. None makes a call yet. `calls_per_second` are the most that each process makes later; a slow
 * machine makes fewer.
 */
void processes_start(const struct target *target, unsigned int count, unsigned int calls_per_second);

/* From now on each process may have made so many calls in all. */
void processes_allow(uint64_t calls);

/* Return when each process has made as many calls as it may, at clock_ns() `deadline` at the latest: then false. */
bool processes_wait(uint64_t deadline);

/* The calls that all processes have made so far. */
uint64_t processes_calls(void);

/* End them. Like processes_wait(), it ends the program with EXIT_FAILED if one of them read something wrong. */
void processes_stop(void);

#endif
