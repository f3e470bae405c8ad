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
 * The most folios that one call copies: the base pages of 4 KiB that
 * mm/migrate.c locks at once without a migrator. Where it locks more, it calls
 * more than once.
 */
#define FERRY_BATCH_FOLIOS	512

/**
 * struct ferry_pair - a folio of a batch and its destination
 * @src:	source; locked, unmapped, its TLB entries flushed
 * @dst:	destination, of the same order; locked, not yet reachable
 * @offset:	offset of @src in the batch, seen as one run of bytes
 * @status:	set by the migrator: 0 if @dst holds the whole content of @src,
 *		a negative errno otherwise; -EINPROGRESS before the call
 */
struct ferry_pair {
	struct folio *src;
	struct folio *dst;
	size_t offset;
	int status;
};

/**
 * struct ferry_batch - folios to copy in one call
 * @reason:	reason of the migration
 * @nr:		pairs in use
 * @bytes:	sum of the folios' sizes
 * @dst_nid:	node of the first destination
 * @serial:	set by the migrator if the calling CPU copied alone. A batch
 *		larger than without a migrator then gains nothing, so the next
 *		one will not be larger
 * @pairs:	the folios; @offset ascends
 *
 * The caller of copy() owns the batch and every folio in it: when copy()
 * returns, the migrator no longer uses either. If a device may still write a
 * folio, the migrator fails that pair and keeps a reference on both of its
 * folios; the references make the move fail, too.
 */
struct ferry_batch {
	enum migrate_reason reason;
	unsigned int nr;
	size_t bytes;
	int dst_nid;
	bool serial;
	struct ferry_pair pairs[FERRY_BATCH_FOLIOS];
};

/**
 * struct ferry_migrator - a way to copy a batch
 * @name:	word that selects it in /sys/kernel/mm/migration/migrator
 * @owner:	module that contains @copy, pinned while the migrator is
 *		selected
 * @groups:	knobs, shown in /sys/kernel/mm/migration/@name/; may be NULL
 * @enable:	called before it is selected; may be NULL. Returns 0, or a
 *		negative errno that the selection fails with. May sleep and
 *		allocate.
 * @disable:	called after it was deselected, when no CPU is inside @copy; may
 *		be NULL. May sleep.
 * @copy:	copies the batch and sets the status of each pair. Returns 0, or
 *		a negative errno if it rejects the whole batch, with no status
 *		changed. Called in process context with all folios locked: may
 *		sleep, must not allocate memory, must not take a folio lock,
 *		must not wait for anything that may need memory reclaim.
 */
struct ferry_migrator {
	const char *name;
	struct module *owner;
	const struct attribute_group **groups;
	int (*enable)(void);
	void (*disable)(void);
	int (*copy)(struct ferry_batch *batch);
};

#ifdef CONFIG_FERRY

/*
 * A bit of the destination's migrate_info beside those of mm/migrate.c: the
 * copy phase has copied the content. It is the third low bit of an anon_vma
 * pointer, so CONFIG_FERRY depends on 64BIT.
 */
#define FERRY_FOLIO_COPIED	BIT(2)

DECLARE_STATIC_KEY_FALSE(ferry_enabled);
DECLARE_STATIC_KEY_FALSE(ferry_large_batches);

void __ferry_copy_folios(struct list_head *src_folios,
			 struct list_head *dst_folios,
			 enum migrate_reason reason);
bool __ferry_batch_full(unsigned int nr_folios, unsigned long nr_pages);
void __ferry_cut_batch(struct list_head *folios, struct list_head *batch);

/**
 * ferry_copy_folios() - copy the eligible folios of a batch before the move
 * @src_folios:	locked, unmapped and flushed sources
 * @dst_folios:	their destinations, in the same order
 * @reason:	reason of the migration
 *
 * Sets FERRY_FOLIO_COPIED in the migrate_info of each destination whose content
 * is complete, and leaves all others to the move phase. Does nothing when off.
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
 * ferry_batch_full() - check a batch against the limits of the migrator
 * @nr_folios:	folios gathered so far
 * @nr_pages:	their base pages
 * @max_pages:	the limit without an offload migrator, in base pages
 *
 * Context: any.
 * Return: true if no folio may be added to the batch.
 */
static inline bool ferry_batch_full(unsigned int nr_folios,
				    unsigned long nr_pages,
				    unsigned long max_pages)
{
	if (static_branch_unlikely(&ferry_large_batches))
		return __ferry_batch_full(nr_folios, nr_pages);
	return nr_pages >= max_pages;
}

/**
 * ferry_cut_batch() - move as many folios to a list as one batch may lock
 * @folios:	folios to migrate, taken from the front; not empty
 * @batch:	an empty list, receives at least one folio
 *
 * Folios that were split from one large batch are too many for a second one.
 * Without an offload migrator the batch was small, and this takes all of them
 * together, as mm/migrate.c always did. It also takes all folios of one last
 * large batch if its migrator is deselected before the split.
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
unsigned int ferry_place_cpus(int nid, unsigned int *cpus, unsigned int max);
bool ferry_cpu_idle(unsigned int cpu);

#else /* !CONFIG_FERRY */

#define FERRY_FOLIO_COPIED	0

static inline void ferry_copy_folios(struct list_head *src_folios,
				     struct list_head *dst_folios,
				     enum migrate_reason reason)
{
}

static inline bool ferry_batch_full(unsigned int nr_folios,
				    unsigned long nr_pages,
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
