/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MM_ZONE_DEVICE_INIT_INTERNAL_H
#define _MM_ZONE_DEVICE_INIT_INTERNAL_H

#include <linux/bits.h>
#include <linux/build_bug.h>
#include <linux/cpumask.h>
#include <linux/math.h>
#include <linux/minmax.h>
#include <linux/mm_types.h>
#include <linux/sched.h>

#include "zone_device_init.h"

/* Both methods leave the same bytes. The faster one depends on the CPU. */
enum memmap_method {
	MEMMAP_FULL,		/* field by field, memmap_init_full() */
	MEMMAP_NONTEMPORAL,	/* non-temporal copies of a template */
	MEMMAP_NR_METHODS,
	MEMMAP_AUTO = MEMMAP_NR_METHODS,
};

/* prep_compound_head() writes the struct pages that a struct folio spans. */
#define MEMMAP_FOLIO_PAGES	(sizeof(struct folio) / sizeof(struct page))
static_assert(sizeof(struct folio) % sizeof(struct page) == 0);

/* A template needs one tail that prep_compound_head() does not write. */
#define MEMMAP_SEED_PAGES	8
static_assert(MEMMAP_FOLIO_PAGES < MEMMAP_SEED_PAGES);

/**
 * struct memmap_template - the common contents of a range's struct pages
 * @head: a page that is no tail; complete unless it is the head of a compound,
 *	to which prep_compound_head() adds the folio fields
 * @tail: a tail, complete but for the pointer to its head
 */
struct memmap_template {
	struct page head;
	struct page tail;
};

/**
 * struct memmap_job - initialisation of one range
 * @range: the range
 * @template: its template; unused by MEMMAP_FULL
 * @method: how to initialise; MEMMAP_AUTO to calibrate
 */
struct memmap_job {
	const struct memmap_range *range;
	struct memmap_template template;
	enum memmap_method method;
};

/* template.c */
bool memmap_template_possible(const struct memmap_range *range);
bool memmap_template_make(const struct memmap_range *range,
			  struct memmap_template *template);
bool memmap_template_matches(const struct memmap_range *range,
			     unsigned long pfn,
			     const struct memmap_template *template);
void memmap_template_apply(const struct memmap_range *range, unsigned long pfn,
			   unsigned long end_pfn,
			   const struct memmap_template *template);
void memmap_init_chunk(const struct memmap_job *job, enum memmap_method method,
		       unsigned long pfn, unsigned long end_pfn);

/* calibrate.c */

/* Chunks of a range that are timed: half of them by each method. */
#define MEMMAP_TRIALS		6

/**
 * struct memmap_calibration - trials of one range
 * @trials: trials that have begun
 * @best_ns: shortest trial of each method in ns, 0 before the first has ended
 */
struct memmap_calibration {
	unsigned int trials;
	u64 best_ns[MEMMAP_NR_METHODS];
};

enum memmap_method memmap_calibrate_next(struct memmap_calibration *calib,
					 bool *trial);
void memmap_calibrate_add(struct memmap_calibration *calib,
			  enum memmap_method method, bool trial, u64 ns);

/* parallel.c */
#define MEMMAP_THREADS_MAX	16

/* 2 MiB of struct pages where they have 64 bytes. */
#define MEMMAP_CHUNK_PFNS	BIT(15)

/* End of the chunk at @pfn: whole compounds, as many PFNs as other chunks. */
static inline unsigned long memmap_chunk_end(const struct memmap_range *range,
					     unsigned long pfn)
{
	pfn += round_up(MEMMAP_CHUNK_PFNS, pgmap_vmemmap_nr(range->pgmap));
	return min(pfn, range->end_pfn);
}

/*
 * CPUs that helpers are queued for: those that the caller's user allows it. A
 * kthread may be bound to the CPU that probes the device, which limits nothing.
 */
static inline const struct cpumask *memmap_allowed_cpus(void)
{
	return current->flags & PF_KTHREAD ? cpu_online_mask :
					     current->cpus_ptr;
}

void memmap_init_parallel(const struct memmap_job *job, unsigned int threads);

/* init.c */
extern bool memmap_nontemporal;
extern unsigned int memmap_threads;

unsigned int memmap_nr_threads(const struct memmap_range *range);
enum memmap_method memmap_choose(struct memmap_job *job);

#endif /* _MM_ZONE_DEVICE_INIT_INTERNAL_H */
