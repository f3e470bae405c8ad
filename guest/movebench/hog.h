/* SPDX-License-Identifier: GPL-2.0 */
/* Threads that keep CPUs busy until the program exits. */
#ifndef MOVEBENCH_HOG_H
#define MOVEBENCH_HOG_H

/* Start `count` threads, the i-th pinned to the i-th usable CPU, modulo their number. Returns when all of them run. */
void hogs_start(unsigned int count);

#endif
