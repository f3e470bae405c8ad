/* SPDX-License-Identifier: GPL-2.0 */
/* A thread that shares the CPU of the calling thread, and counts how often it gets round its loop. */
#ifndef COMPACTBENCH_HOG_H
#define COMPACTBENCH_HOG_H

#include <stdint.h>

/* Returns when it runs. */
void hog_start(void);
void hog_stop(void);

/* Iterations since it was started. */
uint64_t hog_iterations(void);

#endif
