/* SPDX-License-Identifier: GPL-2.0 */
/* Threads that make the machine busy: each burns one CPU until the program exits. */
#ifndef MOVEBENCH_HOG_H
#define MOVEBENCH_HOG_H

/* Hog i runs on the i-th CPU this program may use, and around again. Returns when all are burning. */
void hogs_start(unsigned int count);

#endif
