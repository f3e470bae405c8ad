/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LINUX_FERRY_MTCOPY_H
#define _LINUX_FERRY_MTCOPY_H

#include <linux/ferry.h>

#include <linux/ferry_claim.h>

#define MTCOPY_MAX_THREADS	64
#define MTCOPY_MAX_HELPERS	(MTCOPY_MAX_THREADS - 1)

struct mtcopy_job;

/* For migrators that let CPUs and others share a batch: see mtcopy/main.c. */
struct mtcopy_job *ferry_mtcopy_begin(struct ferry_batch *batch,
				      unsigned int max_helpers);
unsigned int ferry_mtcopy_nr_helpers(const struct mtcopy_job *job);
struct ferry_claims *ferry_mtcopy_start(struct mtcopy_job *job);
size_t ferry_mtcopy_step(struct mtcopy_job *job);
void ferry_mtcopy_end(struct mtcopy_job *job);

#endif /* _LINUX_FERRY_MTCOPY_H */
