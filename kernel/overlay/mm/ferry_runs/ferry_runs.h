/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MM_FERRY_RUNS_H
#define _MM_FERRY_RUNS_H

#include <linux/compat.h>
#include <linux/ferry.h>
#include <linux/jump_label.h>
#include <linux/list.h>
#include <linux/migrate.h>
#include <linux/migrate_mode.h>

#include "../internal.h"

struct migrc_batch;
struct mm_struct;

/**
 * struct ferry_lookup - the look-ups of one call of move_pages(2)
 * @mm:		the address space
 * @pages:	addresses
 * @nodes:	a node for each
 * @nr:		number of addresses, 0 if runs were off when the call began
 * @all:	also move folios that are mapped by other address spaces
 * @lru_disabled: lru_cache_disable() is in effect
 * @skip:	look-ups to leave out, first 0
 * @penalty:	as many were left out last, first 0
 */
struct ferry_lookup {
	struct mm_struct *mm;
	const void __user * __user *pages;
	const int __user *nodes;
	unsigned long nr;
	bool all;
	bool lru_disabled;
	unsigned int skip;
	unsigned int penalty;
};

#ifdef CONFIG_FERRY_RUNS

DECLARE_STATIC_KEY_FALSE(ferry_runs_enabled);

unsigned int __ferry_migrate_runs(struct list_head *from,
				  struct list_head *unmap_folios,
				  struct list_head *dst_folios,
				  new_folio_t get_new_folio,
				  free_folio_t put_new_folio,
				  unsigned long private,
				  enum migrate_reason reason,
				  struct ferry_gather *gather,
				  struct migrc_batch *migrc);
unsigned int __ferry_move_runs(struct list_head *unmap_folios,
			       struct list_head *dst_folios,
			       enum migrate_reason reason);

unsigned long __ferry_add_folios(struct ferry_lookup *lookup, unsigned long i,
				 int node, struct list_head *list);

/**
 * ferry_add_folios() - look up and isolate base pages for move_pages(2)
 * @lookup:	the call
 * @i:		index of the first address to look up
 * @node:	node of the batch; stops at an address for another one
 * @list:	receives the folios
 *
 * Context: process context. May sleep; takes mmap_lock.
 * Return: number of addresses from @i on whose folios are in @list. The next
 * one is for the code for single pages.
 */
static inline unsigned long ferry_add_folios(struct ferry_lookup *lookup,
					     unsigned long i, int node,
					     struct list_head *list)
{
	if (!static_branch_unlikely(&ferry_runs_enabled) ||
	    i >= lookup->nr || in_compat_syscall())
		return 0;
	if (lookup->skip) {
		lookup->skip--;
		return 0;
	}
	return __ferry_add_folios(lookup, i, node, list);
}

/**
 * ferry_migrate_runs() - migrate the folios of a batch that are in runs
 * @from:	the batch; keeps the folios that were not unmapped, as they were
 * @unmap_folios: receives those that were unmapped and not moved, locked
 * @dst_folios:	receives their destinations, locked, in the same order
 * @get_new_folio: allocates a destination
 * @put_new_folio: frees it, or NULL
 * @private:	argument of both
 * @mode:	mode of the migration
 * @reason:	reason of the migration
 * @gather:	state of the batch for mm/ferry
 * @migrc:	state of the batch for mm/migrc
 *
 * Leaves each folio that was unmapped and not moved in the state in which
 * migrate_folio_unmap() leaves it. Does nothing when off, or for a single
 * folio.
 *
 * Context: process context. May sleep; takes only folio locks that are free.
 * Return: number of folios that were moved.
 */
static inline unsigned int ferry_migrate_runs(struct list_head *from,
					      struct list_head *unmap_folios,
					      struct list_head *dst_folios,
					      new_folio_t get_new_folio,
					      free_folio_t put_new_folio,
					      unsigned long private,
					      enum migrate_mode mode,
					      enum migrate_reason reason,
					      struct ferry_gather *gather,
					      struct migrc_batch *migrc)
{
	if (static_branch_unlikely(&ferry_runs_enabled) &&
	    mode == MIGRATE_ASYNC && !list_empty(from) &&
	    !list_is_singular(from))
		return __ferry_migrate_runs(from, unmap_folios, dst_folios,
					    get_new_folio, put_new_folio,
					    private, reason, gather, migrc);
	return 0;
}

/**
 * ferry_move_runs() - move the unmapped folios of a batch that are in runs
 * @unmap_folios: sources, locked and flushed; keeps those that were not moved
 * @dst_folios:	their destinations, in the same order
 * @mode:	mode of the migration
 * @reason:	reason of the migration
 * @gather:	gathering of the batch
 *
 * Completes what migrate_folio_move() does, or leaves a folio as it was. It is
 * then to be copied again, so that a batch whose folios no CPU may copy does
 * not move in runs.
 *
 * Context: process context. May sleep.
 * Return: number of folios that were moved.
 */
static inline unsigned int ferry_move_runs(struct list_head *unmap_folios,
					   struct list_head *dst_folios,
					   enum migrate_mode mode,
					   enum migrate_reason reason,
					   const struct ferry_gather *gather)
{
	if (static_branch_unlikely(&ferry_runs_enabled) &&
	    mode == MIGRATE_ASYNC && !ferry_copy_required(gather))
		return __ferry_move_runs(unmap_folios, dst_folios, reason);
	return 0;
}

void __ferry_lookup_begin(struct ferry_lookup *lookup);
bool ferry_lookup_retry(struct ferry_lookup *lookup, struct list_head *missed);

/**
 * ferry_lookup_begin() - begin a call of move_pages(2)
 * @lookup:	state of the call, not initialised
 * @mm:		the address space
 * @pages:	addresses
 * @nodes:	a node for each
 * @nr:		number of addresses
 * @all:	also move folios that are mapped by other address spaces
 *
 * Disables the LRU batches of the CPUs, if runs are on only for a call of many
 * pages. If runs are off now the whole call is as without them.
 *
 * Context: process context. May sleep.
 */
static inline void ferry_lookup_begin(struct ferry_lookup *lookup,
				      struct mm_struct *mm,
				      const void __user * __user *pages,
				      const int __user *nodes,
				      unsigned long nr, bool all)
{
	if (!static_branch_unlikely(&ferry_runs_enabled)) {
		lookup->nr = 0;
		lookup->lru_disabled = true;
		lru_cache_disable();
		return;
	}
	*lookup = (struct ferry_lookup) {
		.mm = mm,
		.pages = pages,
		.nodes = nodes,
		.nr = nr,
		.all = all,
	};
	__ferry_lookup_begin(lookup);
}

/**
 * ferry_lookup_end() - end a call of move_pages(2)
 * @lookup: as given to ferry_lookup_begin()
 *
 * Context: process context.
 */
static inline void ferry_lookup_end(struct ferry_lookup *lookup)
{
	if (lookup->lru_disabled)
		lru_cache_enable();
}

#else /* !CONFIG_FERRY_RUNS */

static inline void ferry_lookup_begin(struct ferry_lookup *lookup,
				      struct mm_struct *mm,
				      const void __user * __user *pages,
				      const int __user *nodes,
				      unsigned long nr, bool all)
{
	lru_cache_disable();
}

static inline bool ferry_lookup_retry(struct ferry_lookup *lookup,
				      struct list_head *missed)
{
	return false;
}

static inline void ferry_lookup_end(struct ferry_lookup *lookup)
{
	lru_cache_enable();
}

static inline unsigned long ferry_add_folios(struct ferry_lookup *lookup,
					     unsigned long i, int node,
					     struct list_head *list)
{
	return 0;
}

static inline unsigned int ferry_migrate_runs(struct list_head *from,
					      struct list_head *unmap_folios,
					      struct list_head *dst_folios,
					      new_folio_t get_new_folio,
					      free_folio_t put_new_folio,
					      unsigned long private,
					      enum migrate_mode mode,
					      enum migrate_reason reason,
					      struct ferry_gather *gather,
					      struct migrc_batch *migrc)
{
	return 0;
}

static inline unsigned int ferry_move_runs(struct list_head *unmap_folios,
					   struct list_head *dst_folios,
					   enum migrate_mode mode,
					   enum migrate_reason reason,
					   const struct ferry_gather *gather)
{
	return 0;
}

#endif /* CONFIG_FERRY_RUNS */
#endif /* _MM_FERRY_RUNS_H */
