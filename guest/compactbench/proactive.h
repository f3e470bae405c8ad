/* SPDX-License-Identifier: GPL-2.0 */
/* Compaction by kcompactd, without an allocation that waits for it. */
#ifndef COMPACTBENCH_PROACTIVE_H
#define COMPACTBENCH_PROACTIVE_H

#include <stdint.h>

#include "options.h"
#include "usage.h"

/* kcompactd stays as it is until proactive_run(): until the program exits it does nothing by itself. */
void proactive_forbid(void);

/*
 * Let kcompactd of the node compact until half of the free memory is in blocks of 2 MiB, on the CPU of the options.
 * Returns the time in ns until it moved the last page; *before and *after are from its begin and end. Ends the program
 * with EXIT_FAILED if kcompactd is not done within the limit.
 */
uint64_t proactive_run(const struct options *options, struct usage *before, struct usage *after);

#endif
