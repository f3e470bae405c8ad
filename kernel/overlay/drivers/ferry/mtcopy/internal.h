/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _FERRY_MTCOPY_INTERNAL_H
#define _FERRY_MTCOPY_INTERNAL_H

#include <linux/ferry.h>
#include <linux/ferry_mtcopy.h>

/* The words of the file nontemporal. */
enum mtcopy_nontemporal {
	MTCOPY_NEVER,
	MTCOPY_ALWAYS,
	MTCOPY_AUTO,
};

/**
 * struct mtcopy_tuning - the knobs
 * @threads:	CPUs that copy one batch, the caller's included, 1 to
 *		MTCOPY_MAX_THREADS
 * @nontemporal: use of non-temporal stores, enum mtcopy_nontemporal
 */
struct mtcopy_tuning {
	unsigned long threads;
	unsigned long nontemporal;
};

/* helpers.c */
extern struct mtcopy_tuning mtcopy_tuning;

int mtcopy_helpers_refresh(void);
int mtcopy_helpers_init(void);
void mtcopy_helpers_exit(void);
bool mtcopy_is_isolated(unsigned int cpu);
unsigned int mtcopy_pick_helpers(int nid, unsigned int *cpus, unsigned int max,
				 size_t bytes);
void mtcopy_release_helper(unsigned int cpu);

/* chunk.c */
void mtcopy_chunk(struct ferry_batch *batch, size_t start, size_t end,
		  unsigned int *cursor, bool nontemporal);
bool mtcopy_use_nontemporal(const struct ferry_batch *batch);
void mtcopy_calibrate(void);

/* sysfs.c */
extern atomic64_t mtcopy_helper_ns;
extern const struct attribute_group *mtcopy_groups[];

/* main.c */
int mtcopy_copy(struct ferry_batch *batch);
#if IS_ENABLED(CONFIG_KUNIT)
bool mtcopy_helper_chunk(struct mtcopy_job *job, unsigned int *cursor,
			 u64 *start);
#endif

#endif /* _FERRY_MTCOPY_INTERNAL_H */
