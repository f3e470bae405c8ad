// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: The batch copy phase
 *
 * migrate_pages_batch() unmaps a batch of folios, flushes the TLBs once, then moves the
 * folios one at a time: check the reference count, copy, freeze, switch the mapping. The
 * copy phase sits between flush and move. It copies all eligible folios of the batch in
 * one call of a migrator and marks each complete destination; for a marked folio the move
 * leaves the copy out, and does everything else as before.
 *
 * Why an early copy is as good as the one in the move phase:
 *
 *   - The source is locked and unmapped and no TLB holds an entry for it, from before the
 *     copy until after the move. New references can come from the page cache only, and
 *     what they allow without the folio lock is reading. The exception is a pin through the
 *     page cache, memfd_pin_folios(): one that is taken, written through and dropped between
 *     copy and freeze loses its write. So it does without us, in the time of one folio's
 *     copy; here it is the batch's. max_stall_us bounds it.
 *   - References that allow writing (pins) are older than the unmapping. One that is still
 *     held shows in the reference count, which is checked before the copy: such a folio is
 *     not eligible. One that is dropped was dropped before the check, so its writes precede
 *     the copy; see the barrier in ferry_batch_copy().
 *   - The move checks the count again, and freezes it. When that fails the mark is gone and
 *     the retry copies afresh.
 *   - Only folios whose migration callback consists of check, copy, freeze and switch are
 *     eligible (ferry_eligible()). One that does anything first, such as locking buffers,
 *     copies under more than the folio lock; its early copy could be stale.
 *
 * The mark (FERRY_FOLIO_COPIED) lives in the destination's migrate_info, which exists only
 * while the folio is on the list of destinations. The move phase and the undo both take
 * migrate_info out and clear it, whole, before they do anything else, so the mark is used
 * once at most, and never reaches the field's other user, folio->private.
 *
 * A folio that was not copied, for whatever reason, has no mark and is copied by the move
 * phase. That is the fallback for every failure, and how a poisoned source fails alone.
 *
 * Batches are allocated when a migrator is first selected, not here: reclaim migrates too
 * (demotion). When all are in use the folios are left to the move phase at once.
 *
 * Lock order: folio locks of both lists -> ferry_srcu -> what the migrator's copy() takes.
 */

#include <linux/ktime.h>
#include <linux/migrate.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/swap.h>

#include "internal.h"

#define CREATE_TRACE_POINTS
#include <trace/events/ferry.h>

/*
 * A task copies one batch at a time, so as many as there are CPUs are enough unless many
 * sleep in theirs. 64 of 16 KiB are 1 MiB.
 */
#define FERRY_MAX_BATCHES	64

static struct ferry_batch *ferry_batches[FERRY_MAX_BATCHES];
static DECLARE_BITMAP(ferry_batches_busy, FERRY_MAX_BATCHES);
static unsigned int ferry_nr_batches;	/* grows once, under ferry_mutex */

/**
 * ferry_batches_alloc() - allocate the batches, the first time
 *
 * Context: process context, under ferry_mutex, before the first migrator is selected.
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
 * ferry_batch_put() - give a batch back
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

/* Are check, copy, freeze and switch all that the mapping's callback does? */
static bool ferry_plain_mapping(const struct address_space *mapping)
{
	if (mapping_inaccessible(mapping))
		return false;
	return mapping->a_ops->migrate_folio == migrate_folio ||
	       mapping->a_ops->migrate_folio == filemap_migrate_folio;
}

/* An allow-list: anything new is ineligible until somebody has thought about it. */
static bool ferry_plain_folio(struct folio *dst, struct folio *src)
{
	struct address_space *mapping;

	/* hugetlb and all that has movable_ops have a page type; plain folios have none. */
	if (page_has_type(&src->page))
		return false;
	if (folio_is_zone_device(src) || folio_is_zone_device(dst))
		return false;
	/* The move phase reports poison; a DMA engine may not even notice. */
	if (folio_contain_hwpoisoned_page(src))
		return false;
	/* The common case, spared a call; folio_mapping() would say the same. */
	if (folio_test_anon(src) && !folio_test_swapcache(src))
		return true;
	mapping = folio_mapping(src);
	return !mapping || ferry_plain_mapping(mapping);
}

/**
 * ferry_eligible() - may a folio be copied before the move phase?
 * @dst:	destination
 * @src:	source
 * @cause:	receives the counter of the refusal if not
 *
 * Context: both folios locked, @src unmapped and flushed.
 * Return: true if the early copy is as good as a later one.
 */
bool ferry_eligible(struct folio *dst, struct folio *src,
		    enum ferry_stat *cause)
{
	if (!ferry_plain_folio(dst, src)) {
		*cause = FERRY_REFUSED_KIND;
		return false;
	}
	/* The caller of migrate_pages() holds the one reference that is not expected. */
	if (folio_ref_count(src) != folio_expected_ref_count(src) + 1) {
		*cause = FERRY_REFUSED_PINNED;
		return false;
	}
	return true;
}

static void ferry_batch_add(struct ferry_batch *batch, struct folio *dst,
			    struct folio *src)
{
	struct ferry_pair *pair = &batch->pairs[batch->nr++];

	pair->src = src;
	pair->dst = dst;
	pair->offset = batch->bytes;
	pair->status = -EINPROGRESS;
	batch->bytes += folio_size(src);
}

/* Mark the destinations that are complete. Return their number. */
static unsigned int ferry_batch_mark(struct ferry_batch *batch, size_t *bytes)
{
	unsigned int i, copied = batch->nr;

	*bytes = batch->bytes;
	for (i = 0; i < batch->nr; i++) {
		struct ferry_pair *pair = &batch->pairs[i];

		if (likely(!pair->status)) {
			pair->dst->migrate_info |= FERRY_FOLIO_COPIED;
			continue;
		}
		*bytes -= folio_size(pair->src);
		copied--;
	}
	return copied;
}

static void ferry_batch_account(struct ferry_entry *entry,
				struct ferry_batch *batch, u64 ns)
{
	size_t bytes;
	unsigned int copied = ferry_batch_mark(batch, &bytes);

	trace_ferry_copy_end(entry->ops->name, 0, copied, ns);
	ferry_count(entry, FERRY_BATCHES, 1);
	ferry_count(entry, FERRY_FOLIOS, copied);
	ferry_count(entry, FERRY_BYTES, bytes);
	ferry_count(entry, FERRY_COPY_NS, ns);
	ferry_count(entry, FERRY_FALLBACKS, batch->nr - copied);
	if (batch->solo)
		ferry_rate_forget(entry, batch);
	else
		ferry_rate_update(entry, bytes, ns);
}

static void ferry_batch_copy(struct ferry_entry *entry, struct ferry_batch *batch)
{
	u64 start;
	int err;

	if (!batch->nr)
		return;
	if (ferry_batch_small(batch)) {
		ferry_count(entry, FERRY_REFUSED_SMALL, 1);
		return;
	}
	/*
	 * What a pin wrote before it was dropped must be seen by the copy: order the
	 * reads of the reference counts in ferry_eligible() before those of the content.
	 * Pairs with the full barrier of folio_put().
	 */
	smp_rmb();

	batch->dst_nid = folio_nid(batch->pairs[0].dst);
	trace_ferry_copy_begin(entry->ops->name, batch->reason, batch->nr,
			       batch->bytes);
	start = ktime_get_ns();
	err = ferry_copy(batch);
	if (err) {
		trace_ferry_copy_end(entry->ops->name, err, 0, 0);
		ferry_count(entry, FERRY_REFUSED_MIGRATOR, 1);
		/* One CPU copies it now, while all of it is locked. */
		ferry_rate_forget(entry, batch);
		return;
	}
	ferry_batch_account(entry, batch, ktime_get_ns() - start);
}

/*
 * Fill the batch from *srcp and *dstp on, up to the end of the list of sources or of the
 * batch; leave them at the first pair that was not looked at.
 */
static void ferry_batch_fill(struct ferry_batch *batch, struct ferry_entry *entry,
			     struct list_head *src_folios,
			     struct folio **srcp, struct folio **dstp)
{
	struct folio *src = *srcp, *dst = *dstp;
	unsigned int refused[FERRY_NR_STATS] = {};
	enum ferry_stat cause;

	batch->nr = 0;
	batch->bytes = 0;
	batch->solo = false;
	while (!list_entry_is_head(src, src_folios, lru) &&
	       batch->nr < FERRY_BATCH_FOLIOS) {
		if (ferry_eligible(dst, src, &cause))
			ferry_batch_add(batch, dst, src);
		else
			refused[cause]++;
		src = list_next_entry(src, lru);
		dst = list_next_entry(dst, lru);
	}
	*srcp = src;
	*dstp = dst;
	for (cause = FERRY_REFUSED_KIND; cause <= FERRY_REFUSED_PINNED; cause++)
		if (refused[cause])
			ferry_count(entry, cause, refused[cause]);
}

static void ferry_copy_lists(struct ferry_entry *entry, struct ferry_batch *batch,
			     struct list_head *src_folios,
			     struct list_head *dst_folios)
{
	struct folio *src = list_first_entry(src_folios, struct folio, lru);
	struct folio *dst = list_first_entry(dst_folios, struct folio, lru);

	while (!list_entry_is_head(src, src_folios, lru)) {
		ferry_batch_fill(batch, entry, src_folios, &src, &dst);
		ferry_batch_copy(entry, batch);
	}
}

void __ferry_copy_folios(struct list_head *src_folios,
			 struct list_head *dst_folios, enum migrate_reason reason)
{
	struct ferry_entry *entry;
	struct ferry_batch *batch;
	int idx;

	if (list_empty(src_folios))
		return;
	idx = srcu_read_lock(&ferry_srcu);
	entry = ferry_selected();
	if (!entry)
		goto unlock;
	batch = ferry_batch_get();
	if (!batch) {
		ferry_count(entry, FERRY_REFUSED_BUSY, 1);
		goto unlock;
	}
	batch->reason = reason;
	ferry_copy_lists(entry, batch, src_folios, dst_folios);
	ferry_batch_put(batch);
unlock:
	srcu_read_unlock(&ferry_srcu, idx);
}
