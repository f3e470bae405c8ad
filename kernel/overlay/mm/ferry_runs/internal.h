/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MM_FERRY_RUNS_INTERNAL_H
#define _MM_FERRY_RUNS_INTERNAL_H

#include <linux/compiler.h>
#include <linux/ferry_sysfs.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <trace/events/migrate.h>

#include "../internal.h"
#include "../migrate.h"
#include "ferry_runs.h"

/*
 * The most folios of a run. The locks that a run takes are held for no more
 * folios than that.
 */
#define FERRY_RUN_FOLIOS	64

/*
 * The page offsets of a run are within an aligned window of as many: the page
 * tables and the range of an mmu notifier that one run touches are few.
 */
#define FERRY_RUN_WINDOW_SHIFT	9

/* The counters: see stats.c. */
#define FERRY_RUN_STATS(TYPE, _last) {			\
	TYPE(FERRY_RUN_MOVED, moved)			\
	TYPE(FERRY_RUN_UNSUPPORTED, left_unsupported)	\
	TYPE(FERRY_RUN_BUSY, left_busy)			\
	TYPE(FERRY_RUN_NO_MEMORY, left_no_memory)	\
	TYPE(FERRY_RUN_MAPPED, left_mapped)		\
	TYPE(FERRY_RUN_PINNED, left_pinned)		\
	_last						\
}

enum ferry_run_stat FERRY_RUN_STATS(FERRY_COUNTER_ID, FERRY_RUN_NR_STATS);

/**
 * struct ferry_run - folios that are migrated together
 * @mapping:	their ->mapping
 * @anon_vma:	of anonymous folios; the run has a reference while it is in use
 * @first:	least page offset
 * @last:	greatest page offset
 * @nr:		number of folios
 * @src:	sources, locked
 * @dst:	their destinations
 *
 * The folios of a run have the same mapping, window of page offsets, zone and
 * memory cgroup: see ferry_same_run().
 */
struct ferry_run {
	struct address_space *mapping;
	struct anon_vma *anon_vma;
	pgoff_t first;
	pgoff_t last;
	unsigned int nr;
	struct folio *src[FERRY_RUN_FOLIOS];
	struct folio *dst[FERRY_RUN_FOLIOS];
};

/**
 * struct ferry_table - the page table that a walk of a run is in
 * @start:	its first PTE, or NULL
 * @ptl:	its lock, held
 * @base:	address that @start maps
 */
struct ferry_table {
	pte_t *start;
	spinlock_t *ptl;	/* of the page table */
	unsigned long base;
};

/* stats.c */
extern atomic64_t ferry_run_stats[FERRY_RUN_NR_STATS];
void ferry_run_count(const unsigned int *counts);

/* sort.c */
void ferry_sort_runs(struct list_head *from, struct list_head *sorted,
		     unsigned int *counts);

/* walk.c */
typedef void (*ferry_walk_t)(struct ferry_run *run, struct vm_area_struct *vma,
			     unsigned long base, pgoff_t first, pgoff_t last);
void ferry_walk_run(struct ferry_run *run, ferry_walk_t one);
bool ferry_table_enter(struct ferry_table *table, struct mm_struct *mm,
		       unsigned long address);
void ferry_table_leave(struct ferry_table *table);

/* batch.c */
#if IS_ENABLED(CONFIG_KUNIT)
void ferry_learn(u64 *mean, s64 ns, unsigned int nr);
#endif

/* unmap.c */
void ferry_unmap_run(struct ferry_run *run);

/* map.c */
void ferry_map_run(struct ferry_run *run);

/* lru.c */
void ferry_lru_add(struct folio **folios, unsigned int nr);
void ferry_lru_isolate(struct folio **folios, unsigned int nr,
		       struct list_head *list);

/*
 * Large folios gain nothing. The others stay with the code for single folios
 * because it waits for them, because it does something else with them, or
 * because they are rare.
 */
#define FERRY_RUN_REFUSED (BIT(PG_head) | BIT(PG_writeback) |		\
			   BIT(PG_mlocked) | BIT(PG_unevictable) |	\
			   BIT(PG_reserved) | __PG_HWPOISON)

/**
 * ferry_run_eligible() - check that a folio may be part of a run
 * @folio: the folio, isolated by the caller
 *
 * Context: any.
 * Return: true if it may; stable only while the folio is locked.
 */
static inline bool ferry_run_eligible(struct folio *folio)
{
	unsigned long mapping = (unsigned long)READ_ONCE(folio->mapping);

	if (READ_ONCE(folio->flags.f) & FERRY_RUN_REFUSED)
		return false;
	/* KSM folios have a reverse mapping of their own. */
	if (!mapping || (mapping & FOLIO_MAPPING_FLAGS) == FOLIO_MAPPING_KSM)
		return false;
	return !page_has_type(&folio->page) && !folio_is_zone_device(folio);
}

static inline bool ferry_same_memcg(const struct folio *a,
				    const struct folio *b)
{
#ifdef CONFIG_MEMCG
	return a->memcg_data == b->memcg_data;
#else
	return true;
#endif
}

/**
 * ferry_same_run() - check that two folios belong to the same run
 * @a:	a folio
 * @b:	another one
 *
 * Folios of one zone take their destinations by the same rules, and are counted
 * in the same node; folios of one memory cgroup in the same lruvec.
 *
 * Context: any; the result is stable only while both folios are locked.
 * Return: true if they do.
 */
static inline bool ferry_same_run(struct folio *a, struct folio *b)
{
	/*
	 * Callers that hold no lock ask again under it: ferry_lock_source().
	 * Other bits of the word with the zone change under it, too.
	 */
	return data_race(a->mapping == b->mapping &&
			 !((a->index ^ b->index) >> FERRY_RUN_WINDOW_SHIFT) &&
			 page_zone_id(&a->page) == page_zone_id(&b->page) &&
			 ferry_same_memcg(a, b));
}

/* The PTE at an address, under the lock of its table; NULL if there is none. */
static inline pte_t *ferry_table_pte(struct ferry_table *table,
				     struct mm_struct *mm,
				     unsigned long address)
{
	if (unlikely(!table->start || (address & PMD_MASK) != table->base) &&
	    !ferry_table_enter(table, mm, address))
		return NULL;
	return table->start + pte_index(address);
}

#endif /* _MM_FERRY_RUNS_INTERNAL_H */
