/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MM_MEMMAP_INTERNAL_H
#define _MM_MEMMAP_INTERNAL_H

#include <linux/build_bug.h>
#include <linux/mm_types.h>

#include "memmap.h"

/*
 * Ways to write a struct page, the most trusted first. All of them leave the same bytes;
 * which is fastest depends on the CPU, so it is measured.
 */
enum memmap_method {
	MEMMAP_FIELDS,		/* field by field, as without this directory */
	MEMMAP_CACHED,		/* copies of a template, ordinary stores */
	MEMMAP_BLOCK,		/* large copies of what was just copied */
	MEMMAP_STREAMING,	/* copies of a template, stores past the cache */
	MEMMAP_NR_METHODS,
};

extern const char * const memmap_method_names[MEMMAP_NR_METHODS];

/* Below that, and in the first pages of a compound, there is nothing to copy. */
#define MEMMAP_SEED_PAGES	8

/* prep_compound_head() writes to as many struct pages as a struct folio spans. */
#define MEMMAP_FOLIO_PAGES	(sizeof(struct folio) / sizeof(struct page))
/* So the last of the seeds is a tail like all that follow. */
static_assert(sizeof(struct folio) % sizeof(struct page) == 0);
static_assert(MEMMAP_FOLIO_PAGES < MEMMAP_SEED_PAGES);

/**
 * struct memmap_template - what the pages of a range have in common
 * @head:	a page that is not a tail; complete unless it is the head of a compound,
 *		whose folio fields prep_compound_head() adds
 * @tail:	a tail, right but for the pointer to its head
 */
struct memmap_template {
	struct page head;
	struct page tail;
};

/* template.c */
bool memmap_template_possible(const struct memmap_range *range);
bool memmap_template_make(const struct memmap_range *range, struct memmap_template *template);
bool memmap_template_right(const struct memmap_range *range, unsigned long pfn,
			   const struct memmap_template *template);
void memmap_template_apply(const struct memmap_range *range, unsigned long pfn,
			   unsigned long end_pfn, unsigned long compound_nr,
			   const struct memmap_template *template,
			   enum memmap_method method);

/* fill.c */
void memmap_fill(struct page *page, unsigned long nr, const struct page *image,
		 enum memmap_method method);

/**
 * struct memmap_job - one range under way
 * @range:	the range
 * @template:	its template; unused by MEMMAP_FIELDS
 * @method:	how its pages are written
 */
struct memmap_job {
	const struct memmap_range *range;
	struct memmap_template template;
	enum memmap_method method;
};

/* init.c */
unsigned int memmap_threads(const struct memmap_range *range, unsigned long pfn);
enum memmap_method memmap_choose(struct memmap_job *job, unsigned long *pfn);
void memmap_init_chunk(const struct memmap_job *job, enum memmap_method method,
		       unsigned long pfn, unsigned long end_pfn);

/* contest.c */
enum memmap_method memmap_contest(const struct memmap_job *job, unsigned long *pfn);
enum memmap_method memmap_judge(const u64 *best);
void memmap_contest_forget(void);

/* crew.c */
void memmap_crew_init(const struct memmap_job *job, unsigned long pfn, unsigned int threads);

/* knobs.c */
#define MEMMAP_METHOD_AUTO	MEMMAP_NR_METHODS
#define MEMMAP_THREADS_AUTO	0
#define MEMMAP_THREADS_MAX	16

struct memmap_knobs {
	unsigned int method;	/* enum memmap_method, or MEMMAP_METHOD_AUTO */
	unsigned int threads;	/* the caller included, or MEMMAP_THREADS_AUTO */
};

extern struct memmap_knobs memmap_knobs;

#endif /* _MM_MEMMAP_INTERNAL_H */
