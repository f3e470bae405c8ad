// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: The batch copy phase
 *
 * migrate_pages_batch() unmaps a batch of folios, flushes the TLBs once, then
 * moves the folios one at a time: check the reference count, copy, freeze,
 * switch the mapping. The copy phase is between flush and move. It copies all
 * eligible folios of the batch in one call of a migrator and marks each
 * complete destination. For a marked folio the move omits the copy and does
 * everything else as without the mark.
 *
 * The early copy is as good as the one in the move phase:
 *
 *   - The source is locked and unmapped, and no TLB holds an entry for it, from
 *     before the copy until after the move. New references can come from the
 *     page cache only, and without the folio lock such a reference allows
 *     reading only. A pin through the page cache, memfd_pin_folios(), waits for
 *     the folio lock before its caller may write: the migration fails at the
 *     freeze.
 *   - References that allow writing (pins) are older than the unmapping. A pin
 *     that is still held shows in the reference count, which ferry_eligible()
 *     checks before the copy: such a folio is not eligible. A pin that is no
 *     longer held was dropped before the check, so its writes precede the copy;
 *     see the barrier in ferry_batch_copy().
 *   - The move checks the count again, and freezes it. If that fails, it clears
 *     the mark, and the retry copies the folio again.
 *   - A folio is eligible only if its migration callback consists of check,
 *     copy, freeze and switch (ferry_eligible()). A callback that does
 *     something else first may copy under more than the folio lock, so an early
 *     copy of its folio could be stale. buffer_migrate_folio() locks the
 *     buffers first, but it is only for file systems that access them under the
 *     folio lock. So all that can be under way is a transfer that began before
 *     the folio was locked: then a buffer is locked, and the folio is not
 *     eligible. buffer_migrate_folio_norefs() makes no such demand.
 *
 * A hugetlb folio is a batch of its own, copied between its unmapping, which
 * flushes the TLBs, and its move. Its mark is the return value of
 * ferry_copy_hugetlb(), because folio->private has the flags of hugetlb. The
 * callback of hugetlbfs consists of the same steps, and a file of hugetlbfs is
 * written through mappings only.
 *
 * The mark (FERRY_FOLIO_COPIED) is a bit of the destination's migrate_info,
 * which exists only while the folio is on the list of destinations. The move
 * phase and the undo both read and clear the whole of migrate_info before they
 * do anything else, so the mark is used at most once and never reaches the
 * other user of the field, folio->private.
 *
 * The move phase copies every folio that has no mark. This is the fallback for
 * every failure, and lets a folio with poisoned memory fail alone.
 *
 * ferry_select() allocates the batches before it first selects a migrator,
 * because reclaim migrates folios too (demotion) and must not allocate here. If
 * all batches are in use, the copy phase leaves the folios to the move phase at
 * once.
 *
 * Locking: a batch is owned by the task that ferry_batch_get() gave it to. The
 * order is folio locks of both lists -> ferry_srcu -> locks of the migrator.
 */

#include <linux/buffer_head.h>
#include <linux/kasan-enabled.h>
#include <linux/ktime.h>
#include <linux/memcontrol.h>
#include <linux/migrate.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/swap.h>
#include <linux/vmstat.h>

#include "internal.h"

#define CREATE_TRACE_POINTS
#include <trace/events/ferry.h>

/*
 * A task copies one batch at a time, so one batch for each CPU is enough unless
 * many tasks sleep in theirs. 64 batches of 16 KiB are 1 MiB.
 */
#define FERRY_MAX_BATCHES	64

static struct ferry_batch *ferry_batches[FERRY_MAX_BATCHES];
static DECLARE_BITMAP(ferry_batches_busy, FERRY_MAX_BATCHES);
static unsigned int ferry_nr_batches;	/* grows once, under ferry_mutex */

/**
 * ferry_batches_alloc() - allocate the batches unless they are
 *
 * Context: process context, under ferry_mutex, before a migrator is selected.
 * Return: 0 or -ENOMEM.
 */
int ferry_batches_alloc(void)
{
	unsigned int nr = min(num_possible_cpus(), FERRY_MAX_BATCHES);

	while (ferry_nr_batches < nr) {
		struct ferry_batch *batch = kvzalloc_obj(*batch);

		if (!batch)
			return -ENOMEM;
		ferry_batches[ferry_nr_batches] = batch;
		/* Pairs with the acquire in ferry_batch_get(). */
		smp_store_release(&ferry_nr_batches, ferry_nr_batches + 1);
	}
	return 0;
}

/**
 * ferry_batch_get() - claim an empty batch
 *
 * Context: any.
 * Return: a batch for ferry_batch_put(), or NULL if all are in use.
 */
struct ferry_batch *ferry_batch_get(void)
{
	/* Pairs with the release in ferry_batches_alloc(). */
	unsigned int nr = smp_load_acquire(&ferry_nr_batches);
	unsigned int i, slot;

	for (i = 0; i < nr; i++) {
		slot = (raw_smp_processor_id() + i) % nr;
		if (!test_and_set_bit_lock(slot, ferry_batches_busy))
			return ferry_batches[slot];
	}
	return NULL;
}

/**
 * ferry_batch_put() - return a batch to the pool
 * @batch: from ferry_batch_get()
 *
 * Context: any.
 */
void ferry_batch_put(struct ferry_batch *batch)
{
	unsigned int slot;

	for (slot = 0; ferry_batches[slot] != batch; slot++)
		;
	clear_bit_unlock(slot, ferry_batches_busy);
}

/*
 * A transfer of a single buffer locks the buffer, not the folio. It begins
 * under the folio lock only, so none begins until the move.
 */
static bool ferry_buffers_idle(struct folio *src)
{
	struct buffer_head *head = folio_buffers(src), *bh = head;

	if (!head)
		return true;
	do {
		if (buffer_locked(bh))
			return false;
		bh = bh->b_this_page;
	} while (bh != head);
	return true;
}

/* This lists what may be copied early, so that anything new may not. */
static bool ferry_supported(struct folio *dst, struct folio *src)
{
	struct address_space *mapping;

	/* hugetlb and movable_ops folios have a page type, others none. */
	if (page_has_type(&src->page))
		return folio_test_hugetlb(src) &&
		       !folio_contain_hwpoisoned_page(src);
	if (folio_is_zone_device(src) || folio_is_zone_device(dst))
		return false;
	/* The move phase reports poison; a DMA engine may not even notice. */
	if (folio_contain_hwpoisoned_page(src))
		return false;
	/* The common case, without a call of folio_mapping(). */
	if (folio_test_anon(src) && !folio_test_swapcache(src))
		return true;
	mapping = folio_mapping(src);
	if (!mapping)
		return true;
	if (mapping_inaccessible(mapping))
		return false;
	/* These callbacks do nothing but check, copy, freeze and switch. */
	if (mapping->a_ops->migrate_folio == migrate_folio)
		return true;
	/*
	 * Without CONFIG_BUFFER_HEAD block devices have it, too. File systems
	 * write to the page cache of their device without the folio lock.
	 */
	if (mapping->a_ops->migrate_folio == filemap_migrate_folio)
		return !S_ISBLK(mapping->host->i_mode);
	return IS_ENABLED(CONFIG_BUFFER_HEAD) &&
	       mapping->a_ops->migrate_folio == buffer_migrate_folio &&
	       ferry_buffers_idle(src);
}

/**
 * ferry_eligible() - check that a folio may be copied before the move phase
 * @dst:	destination
 * @src:	source
 * @reason:	receives the counter for a folio that is not eligible
 *
 * Context: both folios locked, @src unmapped and flushed.
 * Return: true if the early copy is as good as a later one.
 */
bool ferry_eligible(struct folio *dst, struct folio *src,
		    enum ferry_stat *reason)
{
	if (!ferry_supported(dst, src)) {
		*reason = FERRY_SKIPPED_UNSUPPORTED;
		return false;
	}
	/* The caller of migrate_pages() holds the reference not expected. */
	if (folio_ref_count(src) != folio_expected_ref_count(src) + 1) {
		*reason = FERRY_SKIPPED_PINNED;
		return false;
	}
	return true;
}

/*
 * Do what copy_highpage() does beside the copy, because not every migrator uses
 * it: make the destination's KASAN tag match all memory tags. Compaction and
 * memory offlining allocate destinations with a random tag (arm64
 * KASAN_HW_TAGS). A later mprotect(PROT_MTE) by the owner changes the memory's
 * tags, and with the old tag the kernel's next access through the linear map
 * would fault.
 */
static void ferry_reset_kasan_tags(struct folio *dst)
{
	unsigned long i;

	if (!kasan_hw_tags_enabled())
		return;
	for (i = 0; i < folio_nr_pages(dst); i++)
		page_kasan_tag_reset(folio_page(dst, i));
}

/* Mark the complete destinations of a copied batch for the move phase. */
static void ferry_mark_copied(struct ferry_batch *batch)
{
	unsigned int i;

	for (i = 0; i < batch->nr; i++)
		if (likely(!batch->pairs[i].status))
			batch->pairs[i].dst->migrate_info |= FERRY_FOLIO_COPIED;
}

/* For the machine, and for the memory cgroup of the task that migrates. */
static void ferry_count_events(const struct ferry_batch *batch)
{
	unsigned long dma_pages = batch->dma_bytes >> PAGE_SHIFT;

	count_vm_event(PGMIGRATE_BATCH);
	count_vm_events(PGMIGRATE_DMA, dma_pages);
	if (!current->mm)
		return;
	count_memcg_event_mm(current->mm, PGMIGRATE_BATCH);
	count_memcg_events_mm(current->mm, PGMIGRATE_DMA, dma_pages);
}

/* Count a copied batch, and end what the migrator left out. */
static void ferry_batch_finish(struct ferry_entry *entry,
			       struct ferry_batch *batch, u64 ns)
{
	unsigned int i, copied = batch->nr;
	size_t bytes = batch->bytes;

	for (i = 0; i < batch->nr; i++) {
		struct ferry_pair *pair = &batch->pairs[i];

		if (likely(!pair->status)) {
			ferry_reset_kasan_tags(pair->dst);
			continue;
		}
		bytes -= folio_size(pair->src);
		copied--;
	}
	trace_ferry_copy_end(entry->ops->name, 0, copied, ns);
	ferry_count_events(batch);
	ferry_count(entry, batch->reason, FERRY_BATCHES, 1);
	ferry_count(entry, batch->reason, FERRY_FOLIOS, copied);
	ferry_count(entry, batch->reason, FERRY_BYTES, bytes);
	ferry_count(entry, batch->reason, FERRY_COPY_NS, ns);
	ferry_count(entry, batch->reason, FERRY_FALLBACKS, batch->nr - copied);
	if (batch->serial)
		ferry_gained_nothing(batch);
	else
		ferry_rate_update(batch->reason, batch->src_nid, batch->dst_nid,
				  bytes, ns);
}

/*
 * Copy a batch, unless it has fewer bytes than @min. Return true if the
 * migrator copied it; each pair then has its status.
 */
static bool ferry_batch_copy(struct ferry_entry *entry,
			     struct ferry_batch *batch, size_t min)
{
	u64 start;
	int err;

	if (!batch->nr)
		return false;
	if (batch->bytes < min) {
		ferry_count(entry, batch->reason, FERRY_SKIPPED_SMALL, 1);
		return false;
	}
	/*
	 * The copy must see everything that was written through a pin before
	 * the pin was dropped: order the reads of the reference counts in
	 * ferry_eligible() before those of the content. Pairs with the full
	 * barrier of folio_put().
	 */
	smp_rmb();

	batch->src_nid = folio_nid(batch->pairs[0].src);
	batch->dst_nid = folio_nid(batch->pairs[0].dst);
	trace_ferry_copy_begin(entry->ops->name, batch->reason, batch->nr,
			       batch->bytes);
	start = ktime_get_ns();
	err = entry->ops->copy(batch);
	if (!err) {
		ferry_batch_finish(entry, batch, ktime_get_ns() - start);
		return true;
	}
	trace_ferry_copy_end(entry->ops->name, err, 0, 0);
	ferry_count(entry, batch->reason, FERRY_REJECTED, 1);
	/* One CPU copies it now, in the move phase, with all of it locked. */
	ferry_gained_nothing(batch);
	return false;
}

static void ferry_batch_clear(struct ferry_batch *batch)
{
	batch->nr = 0;
	batch->bytes = 0;
	batch->serial = false;
	batch->dma_bytes = 0;
	batch->max_us = ferry_max_us(batch->reason);
}

static void ferry_batch_add(struct ferry_batch *batch, struct folio *src,
			    struct folio *dst)
{
	batch->pairs[batch->nr++] = (struct ferry_pair) {
		.src = src,
		.dst = dst,
		.offset = batch->bytes,
		.status = -EINPROGRESS,
	};
	batch->bytes += folio_size(src);
}

/*
 * Fill the batch from *srcp and *dstp on, until the list of sources ends or the
 * batch is full. Leave both at the first pair that does not belong to it.
 */
static void ferry_batch_fill(struct ferry_batch *batch,
			     struct ferry_entry *entry,
			     struct list_head *src_folios,
			     struct folio **srcp, struct folio **dstp)
{
	struct folio *src = *srcp, *dst = *dstp;
	unsigned int skipped[FERRY_NR_STATS] = {};
	enum ferry_stat reason;

	ferry_batch_clear(batch);
	while (!list_entry_is_head(src, src_folios, lru) &&
	       batch->nr < FERRY_BATCH_FOLIOS) {
		if (ferry_eligible(dst, src, &reason))
			ferry_batch_add(batch, src, dst);
		else
			skipped[reason]++;
		src = list_next_entry(src, lru);
		dst = list_next_entry(dst, lru);
	}
	*srcp = src;
	*dstp = dst;
	for (reason = FERRY_SKIPPED_UNSUPPORTED;
	     reason <= FERRY_SKIPPED_PINNED; reason++)
		if (skipped[reason])
			ferry_count(entry, batch->reason, reason,
				    skipped[reason]);
}

/*
 * Begin a batch of the migrator of @client, or of the one that is selected for
 * @reason. Return NULL if none is, or if no batch is free.
 */
static struct ferry_batch *ferry_batch_begin(const struct ferry_client *client,
					     enum migrate_reason reason,
					     struct ferry_entry **entry)
{
	struct ferry_batch *batch;

	*entry = client ? client->entry : ferry_selected(reason);
	if (!*entry)
		return NULL;
	batch = ferry_batch_get();
	if (batch)
		batch->reason = reason;
	else
		ferry_count(*entry, reason, FERRY_SKIPPED_NO_BUFFER, 1);
	return batch;
}

void __ferry_copy_folios(const struct ferry_client *client,
			 struct list_head *src_folios,
			 struct list_head *dst_folios,
			 enum migrate_reason reason)
{
	struct folio *src = list_first_entry(src_folios, struct folio, lru);
	struct folio *dst = list_first_entry(dst_folios, struct folio, lru);
	size_t min = client ? 0 : READ_ONCE(ferry_batch_min_bytes);
	struct ferry_entry *entry;
	struct ferry_batch *batch;
	int idx;

	if (list_empty(src_folios))
		return;
	idx = srcu_read_lock(&ferry_srcu);
	batch = ferry_batch_begin(client, reason, &entry);
	if (!batch)
		goto unlock;
	while (!list_entry_is_head(src, src_folios, lru)) {
		ferry_batch_fill(batch, entry, src_folios, &src, &dst);
		if (ferry_batch_copy(entry, batch, min))
			ferry_mark_copied(batch);
	}
	ferry_batch_put(batch);
unlock:
	srcu_read_unlock(&ferry_srcu, idx);
}

bool __ferry_copy_hugetlb(const struct ferry_client *client, struct folio *dst,
			  struct folio *src, enum migrate_reason reason)
{
	int idx = srcu_read_lock(&ferry_srcu);
	struct ferry_entry *entry;
	struct ferry_batch *batch = ferry_batch_begin(client, reason, &entry);
	enum ferry_stat skipped;
	bool copied = false;

	if (!batch)
		goto unlock;
	if (!ferry_eligible(dst, src, &skipped)) {
		ferry_count(entry, reason, skipped, 1);
		goto put;
	}
	ferry_batch_clear(batch);
	ferry_batch_add(batch, src, dst);
	copied = ferry_batch_copy(entry, batch, 0) && !batch->pairs[0].status;
put:
	ferry_batch_put(batch);
unlock:
	srcu_read_unlock(&ferry_srcu, idx);
	return copied;
}
