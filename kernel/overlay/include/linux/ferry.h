/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LINUX_FERRY_H
#define _LINUX_FERRY_H

#include <linux/bits.h>
#include <linux/jump_label.h>
#include <linux/list.h>
#include <linux/migrate_mode.h>
#include <linux/mm_types.h>
#include <linux/types.h>

struct attribute_group;
struct module;

/*
 * The most folios one call copies: what mm/migrate.c locks at once without us, in
 * base pages of 4 KiB. Where it locks more, more calls copy them.
 */
#define FERRY_BATCH_FOLIOS	512

/**
 * struct ferry_pair - one folio of a batch and where it goes
 * @src:	source; locked, unmapped, its TLB entries flushed
 * @dst:	destination, of the same order; locked, reachable by nobody else
 * @offset:	where @src begins when the batch is seen as one run of bytes
 * @status:	written by the migrator: 0 if all of @dst holds what @src held, a
 *		negative errno otherwise; -EINPROGRESS before it is called
 */
struct ferry_pair {
	struct folio *src;
	struct folio *dst;
	size_t offset;
	int status;
};

/**
 * struct ferry_batch - folios to copy in one call
 * @reason:	why the folios migrate
 * @nr:		pairs in use
 * @bytes:	sum of the folios' sizes
 * @dst_nid:	node of the first destination
 * @solo:	set by the migrator when the calling CPU copied alone: batches larger than
 *		those without a migrator gain nothing then, and the next will be no larger
 * @pairs:	the folios; @offset ascends
 *
 * The caller of the migrator owns the batch and every folio in it; a migrator
 * must have let go of both when its copy() returns. What it cannot let go of, as
 * memory that a device may still write, it holds by references on both folios of
 * a pair that has failed: then the move fails, too.
 */
struct ferry_batch {
	enum migrate_reason reason;
	unsigned int nr;
	size_t bytes;
	int dst_nid;
	bool solo;
	struct ferry_pair pairs[FERRY_BATCH_FOLIOS];
};

/**
 * struct ferry_migrator - a way to copy a batch
 * @name:	word that selects it in /sys/kernel/mm/migration/migrator
 * @owner:	module that holds @copy, pinned while the migrator is selected
 * @groups:	knobs, shown in /sys/kernel/mm/migration/@name/; may be NULL
 * @enable:	called before it is selected; may be NULL. Returns 0, or a negative errno
 *		that the selection fails with. May sleep and allocate.
 * @disable:	called when it is not selected any more and no CPU is inside @copy; may be
 *		NULL. May sleep.
 * @copy:	copies the batch and sets the status of each pair. Returns 0, or a
 *		negative errno when it refuses the batch whole, with no status
 *		changed. Called in process context with all folios locked: may
 *		sleep, must not allocate memory, must not take a folio lock, must
 *		not wait for anything that may need memory reclaim.
 */
struct ferry_migrator {
	const char *name;
	struct module *owner;
	const struct attribute_group **groups;
	int (*enable)(void);
	void (*disable)(void);
	int (*copy)(struct ferry_batch *batch);
};

/**
 * enum ferry_spread - how helper CPUs are chosen
 * @FERRY_SPREAD_LLC:	nearest node first, last-level caches in turn
 * @FERRY_SPREAD_NODE:	nearest node first, in CPU order
 * @FERRY_SPREAD_NONE:	in CPU order; the scheduler places the helpers
 */
enum ferry_spread {
	FERRY_SPREAD_LLC,
	FERRY_SPREAD_NODE,
	FERRY_SPREAD_NONE,
};

#ifdef CONFIG_FERRY

/*
 * Bit of the destination's migrate_info, beside mm/migrate.c's own: the batch copy
 * phase has copied the content. The third low bit of an anon_vma pointer, hence 64BIT.
 */
#define FERRY_FOLIO_COPIED	BIT(2)

DECLARE_STATIC_KEY_FALSE(ferry_enabled);
DECLARE_STATIC_KEY_FALSE(ferry_large_batches);

void __ferry_copy_folios(struct list_head *src_folios,
			 struct list_head *dst_folios, enum migrate_reason reason);
bool __ferry_batch_full(unsigned int nr_folios, unsigned long nr_pages);
void __ferry_cut_batch(struct list_head *folios, struct list_head *batch);

/**
 * ferry_copy_folios() - copy early what may be copied early
 * @src_folios:	locked, unmapped and flushed sources
 * @dst_folios:	their destinations, in the same order
 * @reason:	why they migrate
 *
 * Sets FERRY_FOLIO_COPIED in the migrate_info of each destination whose content is
 * complete; all others are left to the move phase. Nothing at all when off.
 *
 * Context: process context, folios of both lists locked. May sleep.
 */
static inline void ferry_copy_folios(struct list_head *src_folios,
				     struct list_head *dst_folios,
				     enum migrate_reason reason)
{
	if (static_branch_unlikely(&ferry_enabled))
		__ferry_copy_folios(src_folios, dst_folios, reason);
}

/**
 * ferry_batch_full() - has a batch as much as it may lock?
 * @nr_folios:	folios gathered so far
 * @nr_pages:	their base pages
 * @max_pages:	the limit when no offload migrator is selected, in base pages
 *
 * Context: any.
 * Return: true if the batch must be migrated before more is gathered.
 */
static inline bool ferry_batch_full(unsigned int nr_folios, unsigned long nr_pages,
				    unsigned long max_pages)
{
	if (static_branch_unlikely(&ferry_large_batches))
		return __ferry_batch_full(nr_folios, nr_pages);
	return nr_pages >= max_pages;
}

/**
 * ferry_cut_batch() - take from a list what one batch may lock
 * @folios:	folios to migrate, emptied from the front; not empty
 * @batch:	an empty list, receives at least one folio
 *
 * Folios that were split from one large batch are too many for a second one. Without an
 * offload migrator the batch was small, and they are taken together, as ever; so are those
 * of one last large batch, when the migrator is deselected under it.
 *
 * Context: any; the caller owns both lists.
 */
static inline void ferry_cut_batch(struct list_head *folios,
				   struct list_head *batch)
{
	if (static_branch_unlikely(&ferry_large_batches))
		__ferry_cut_batch(folios, batch);
	else
		list_splice_init(folios, batch);
}

int ferry_register(const struct ferry_migrator *migrator);
void ferry_unregister(const struct ferry_migrator *migrator);
unsigned int ferry_spread_cpus(int nid, enum ferry_spread spread,
			       unsigned int *cpus, unsigned int max);
bool ferry_cpu_idle(unsigned int cpu);

#else /* !CONFIG_FERRY */

#define FERRY_FOLIO_COPIED	0

static inline void ferry_copy_folios(struct list_head *src_folios,
				     struct list_head *dst_folios,
				     enum migrate_reason reason)
{
}

static inline bool ferry_batch_full(unsigned int nr_folios, unsigned long nr_pages,
				    unsigned long max_pages)
{
	return nr_pages >= max_pages;
}

static inline void ferry_cut_batch(struct list_head *folios,
				   struct list_head *batch)
{
	list_splice_init(folios, batch);
}

#endif /* CONFIG_FERRY */
#endif /* _LINUX_FERRY_H */
