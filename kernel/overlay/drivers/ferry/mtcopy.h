/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _FERRY_MTCOPY_H
#define _FERRY_MTCOPY_H

#include <linux/ferry.h>

/* How the copy stores, the words of the stores knob. */
enum mtcopy_stores {
	MTCOPY_CACHED,
	MTCOPY_STREAMING,
	MTCOPY_AUTO,
};

/**
 * struct mtcopy_tuning - what the knobs set
 * @threads:	CPUs that copy one batch, the caller's included, 1 to MTCOPY_MAX_THREADS
 * @spread:	how the helpers are chosen
 * @stores:	how they store
 */
struct mtcopy_tuning {
	unsigned int threads;
	enum ferry_spread spread;
	enum mtcopy_stores stores;
};

#define MTCOPY_MAX_THREADS	64

extern struct mtcopy_tuning mtcopy_tuning;
extern const struct attribute_group *mtcopy_groups[];

/* mtcopy.c */
int mtcopy_copy(struct ferry_batch *batch);

/* mtcopy_chunk.c */
unsigned int mtcopy_nr_chunks(const struct ferry_batch *batch);
void mtcopy_chunk(struct ferry_batch *batch, unsigned int chunk,
		  unsigned int *cursor, bool streaming);
bool mtcopy_streams(const struct ferry_batch *batch);
void mtcopy_calibrate(void);

/* mtcopy_helpers.c */
int mtcopy_helpers_init(void);
void mtcopy_helpers_exit(void);
int mtcopy_helpers_refresh(void);
unsigned int mtcopy_pick_helpers(int nid, unsigned int *cpus, unsigned int max,
				 size_t bytes);

#endif /* _FERRY_MTCOPY_H */
