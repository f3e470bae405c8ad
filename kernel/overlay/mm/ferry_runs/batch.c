// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Runs of a batch
 *
 * Migration of a batch has two hooks for runs. This is the first one:
 *
 *   1. ferry_sort_runs() brings the folios of each run together.
 *   2. The destinations of a run are allocated before its first source is
 *      locked.
 *   3. The sources are locked, if that needs no waiting, and all checks of
 *      the first step, which took no lock, are repeated.
 *   4. ferry_unmap_run() unmaps them.
 *   5. A source that is still mapped gets its PTEs back and is left to the code
 *      for single folios.
 *   6. As soon as enough folios are unmapped, their TLB entries are flushed,
 *      and __ferry_move_runs() moves them.
 *
 * A task that touches an unmapped folio waits until it is mapped again. So this
 * does not unmap the whole batch first, but part by part, with a TLB flush for
 * each. A part has FERRY_RUN_FOLIOS where a flush is cheap: where the address
 * space runs on no other CPU, or where other CPUs answer an interrupt at once.
 * Where it takes long, as in a virtual machine whose CPUs wait for a host CPU,
 * parts are so large that flushes take a seventh of the time, up to the whole
 * batch.
 *
 * A part is never larger than the batch of 512 base pages that waits together
 * without runs, and like that one it allocates some destinations, here those of
 * its next run, while other folios of it are unmapped.
 *
 * A migrator gains more from a larger batch. If one is selected, step 6 is left
 * out: the unmapped folios are handed over to the batch, each in the state in
 * which migrate_folio_unmap() leaves it. The batch flushes the TLBs, the
 * migrator copies, and the second hook, ferry_move_runs(), moves the runs.
 * Folios that step 6 could not move take the same way. The code for single
 * folios moves or undoes the rest. Such a batch follows mm/ferry/gather.c: all
 * its destinations are allocated before step 3 of the first run, and after half
 * of batch_max_us no further run is unmapped.
 *
 * Locking: see mm/ferry_runs/walk.c.
 */

#include <kunit/visibility.h>
#include <linux/buffer_head.h>
#include <linux/math64.h>
#include <linux/migrate.h>
#include <linux/migrc.h>
#include <linux/mm.h>
#include <linux/rmap.h>
#include <linux/sched.h>
#include <linux/sched/clock.h>

#include "internal.h"

/*
 * Running means over about eight flushes, in ns: of a flush, and of the other
 * work for a folio. All tasks share them without a lock. A lost update is a
 * lost sample.
 */
static u64 ferry_flush_ns;
static u64 ferry_folio_ns;

/**
 * struct ferry_runs_batch - a batch whose runs are being migrated
 * @from:	folios that are left to the code for single folios
 * @unmapped:	unmapped sources, not yet moved
 * @targets:	their destinations, in the same order
 * @nr_unmapped: their number
 * @locked:	local_clock() before the first of them was locked
 * @nr_moved:	number of folios that were moved
 * @get_new_folio: allocates a destination
 * @put_new_folio: frees it, or NULL
 * @private:	argument of both
 * @reason:	reason of the migration
 * @gather:	state of the batch for mm/ferry
 * @migrc:	state of the batch for mm/migrc
 * @counts:	number of folios by result
 */
struct ferry_runs_batch {
	struct list_head *from;
	struct list_head unmapped;
	struct list_head targets;
	unsigned int nr_unmapped;
	u64 locked;
	unsigned int nr_moved;
	new_folio_t *get_new_folio;
	free_folio_t *put_new_folio;
	unsigned long private;
	enum migrate_reason reason;
	struct ferry_gather *gather;
	struct migrc_batch *migrc;
	unsigned int counts[FERRY_RUN_NR_STATS];
};

static void ferry_put_target(struct ferry_runs_batch *batch, struct folio *dst)
{
	if (batch->put_new_folio)
		batch->put_new_folio(dst, batch->private);
	else
		folio_put(dst);
}

/* Leave a source to the code for single folios. */
static void ferry_leave_source(struct ferry_runs_batch *batch,
			       struct folio *src, enum ferry_run_stat cause)
{
	list_move_tail(&src->lru, batch->from);
	batch->counts[cause]++;
}

/*
 * alloc_migration_target() for sources of one zone, at once if possible. It
 * does not reclaim: that is for the caller's own function, which comes next.
 */
static unsigned int ferry_alloc_bulk(struct ferry_run *run,
				     const struct migration_target_control *mtc)
{
	struct page **pages = (struct page **)run->dst;
	struct folio *src = run->src[0];
	int nid = mtc->nid == NUMA_NO_NODE ? folio_nid(src) : mtc->nid;
	gfp_t gfp = (mtc->gfp_mask & ~__GFP_DIRECT_RECLAIM) | __GFP_NOWARN;

	if (folio_zonenum(src) == ZONE_MOVABLE)
		gfp |= __GFP_HIGHMEM;
	memset(pages, 0, run->nr * sizeof(*pages));
	/* The folio of a base page has the address of its page. */
	BUILD_BUG_ON(offsetof(struct folio, page));
	return __alloc_pages_bulk(gfp, nid, mtc->nmask, run->nr, pages);
}

/*
 * Allocate a destination for each source, and return how many there are. The
 * bulk allocation gives up early, for example below the low watermark; the
 * caller's own function does the rest.
 */
static unsigned int ferry_alloc_targets(struct ferry_runs_batch *batch,
					struct ferry_run *run)
{
	unsigned int nr = 0;

	if (batch->get_new_folio == alloc_migration_target)
		nr = ferry_alloc_bulk(run, (void *)batch->private);
	for (; nr < run->nr; nr++) {
		run->dst[nr] = batch->get_new_folio(run->src[nr],
						    batch->private);
		if (!run->dst[nr])
			break;
	}
	return nr;
}

/* Lock a source and check again that it belongs to the run. */
static bool ferry_lock_source(struct folio *src, struct folio *first)
{
	if (!folio_trylock(src))
		return false;
	if (likely(ferry_run_eligible(src) &&
		   (src == first || ferry_same_run(src, first)) &&
		   folio_ref_count(src) > 1 &&
		   (folio_mapped(src) || !folio_test_anon(src))))
		return true;
	folio_unlock(src);
	return false;
}

/*
 * These callbacks check, copy, freeze and switch. With MIGRATE_ASYNC they wait
 * for no lock of a buffer.
 */
static bool ferry_mapping_supported(struct address_space *mapping)
{
	const struct address_space_operations *a_ops = mapping->a_ops;

	if (mapping_inaccessible(mapping))
		return false;
	if (IS_ENABLED(CONFIG_BUFFER_HEAD) &&
	    (a_ops->migrate_folio == buffer_migrate_folio ||
	     a_ops->migrate_folio == buffer_migrate_folio_norefs))
		return true;
	return a_ops->migrate_folio == migrate_folio ||
	       a_ops->migrate_folio == filemap_migrate_folio;
}

/*
 * Lock the sources of a run. Drop those that are not part of it any more, each
 * with its destination. Return whether any is left.
 */
static bool ferry_lock_run(struct ferry_runs_batch *batch,
			   struct ferry_run *run)
{
	struct folio *first = NULL;
	unsigned int i, nr = 0;

	for (i = 0; i < run->nr; i++) {
		struct folio *src = run->src[i], *dst = run->dst[i];

		if (!ferry_lock_source(src, first ?: src)) {
			ferry_leave_source(batch, src, FERRY_RUN_BUSY);
			ferry_put_target(batch, dst);
			continue;
		}
		if (!first) {
			first = src;
			run->mapping = src->mapping;
			run->first = src->index;
			run->last = src->index;
		}
		run->first = min(run->first, src->index);
		run->last = max(run->last, src->index);
		dst->migrate_info = 0;
		run->src[nr] = src;
		run->dst[nr++] = dst;
	}
	run->nr = nr;
	return nr;
}

/* Find the run in the sorted list that begins with @first. */
static void ferry_find_run(struct ferry_run *run, struct folio *first,
			   struct list_head *sorted)
{
	struct folio *folio = first;

	run->anon_vma = NULL;
	run->nr = 0;
	list_for_each_entry_from(folio, sorted, lru) {
		if (run->nr == FERRY_RUN_FOLIOS ||
		    (run->nr && !ferry_same_run(first, folio)))
			break;
		run->src[run->nr++] = folio;
	}
}

/*
 * Allocate the destinations of a batch that follows mm/ferry/gather.c. Nothing
 * of it is locked.
 */
static noinline_for_stack void ferry_alloc_batch(struct ferry_runs_batch *batch,
						 struct list_head *sorted)
{
	struct folio *src = list_first_entry(sorted, struct folio, lru);
	struct ferry_gather *gather = batch->gather;
	struct ferry_run run __uninitialized;	/* 1 KiB */
	unsigned int i, nr, room;

	while (!list_entry_is_head(src, sorted, lru)) {
		room = ferry_gather_room(gather);
		if (src == gather->failed || !room)
			return;
		cond_resched();
		ferry_find_run(&run, src, sorted);
		run.nr = min(run.nr, room);
		nr = ferry_alloc_targets(batch, &run);
		for (i = 0; i < nr; i++)
			ferry_add_destination(gather, run.src[i], run.dst[i]);
		if (nr < run.nr) {
			gather->failed = run.src[nr];
			batch->counts[FERRY_RUN_NO_MEMORY] += run.nr - nr;
			return;
		}
		src = list_next_entry(run.src[nr - 1], lru);
	}
	ferry_alloc_destinations(gather, batch->from);
}

/*
 * Take the destinations that ferry_alloc_batch() allocated, or allocate them
 * now. The sources without one do not belong to the run. Return whether there
 * is one for each source.
 */
static bool ferry_get_targets(struct ferry_runs_batch *batch,
			      struct ferry_run *run)
{
	unsigned int i, wanted = run->nr, nr = 0;

	if (batch->gather->active) {
		for (; nr < wanted; nr++) {
			run->dst[nr] = ferry_take_destination(batch->gather,
							      run->src[nr]);
			if (!run->dst[nr])
				break;
		}
	} else {
		nr = ferry_alloc_targets(batch, run);
		for (i = nr; i < wanted; i++)
			ferry_leave_source(batch, run->src[i],
					   FERRY_RUN_NO_MEMORY);
	}
	run->nr = nr;
	return nr == wanted;
}

static void ferry_undo_run(struct ferry_runs_batch *batch,
			   struct ferry_run *run, enum ferry_run_stat cause)
{
	unsigned int i;

	for (i = 0; i < run->nr; i++) {
		folio_unlock(run->src[i]);
		ferry_leave_source(batch, run->src[i], cause);
		ferry_put_target(batch, run->dst[i]);
	}
}

/*
 * Hand an unmapped folio over to the batch, with a reference to its anon_vma.
 * Return false if it is still mapped; then it has its PTEs back.
 */
static bool ferry_hand_over(struct ferry_runs_batch *batch,
			    struct ferry_run *run, struct folio *src,
			    struct folio *dst, bool was_mapped)
{
	unsigned long state = was_mapped ? FOLIO_WAS_MAPPED : 0;

	migrc_folio_resume(dst);
	dst->migrate_info = 0;
	/* A speculative reference may have locked a new folio. */
	if (likely(!folio_mapped(src) && folio_trylock(dst))) {
		state |= migrc_folio_unmapped(batch->migrc, src, was_mapped);
		__migrate_folio_record(dst, state, run->anon_vma);
		list_move_tail(&src->lru, &batch->unmapped);
		list_add_tail(&dst->lru, &batch->targets);
		return true;
	}
	migrc_folio_not_migrated(batch->migrc);
	remove_migration_ptes(src, src, 0);
	folio_unlock(src);
	ferry_leave_source(batch, src, FERRY_RUN_MAPPED);
	ferry_put_target(batch, dst);
	return false;
}

/* Unmap the locked folios of a run, and hand them over. */
static void ferry_unmap_locked(struct ferry_runs_batch *batch,
			       struct ferry_run *run)
{
	DECLARE_BITMAP(was_mapped, FERRY_RUN_FOLIOS);
	unsigned int i, nr = 0;

	bitmap_zero(was_mapped, FERRY_RUN_FOLIOS);
	for (i = 0; i < run->nr; i++)
		if (folio_mapped(run->src[i]))
			__set_bit(i, was_mapped);
	if (!bitmap_empty(was_mapped, FERRY_RUN_FOLIOS))
		ferry_unmap_run(run);
	for (i = 0; i < run->nr; i++)
		nr += ferry_hand_over(batch, run, run->src[i], run->dst[i],
				      test_bit(i, was_mapped));
	batch->nr_unmapped += nr;
	if (!run->anon_vma)
		return;
	/* The run had one reference, and each folio of the batch has its own */
	if (nr)
		atomic_add(nr - 1, &run->anon_vma->refcount);
	else
		put_anon_vma(run->anon_vma);
}

/* Find the mapping, or the anon_vma, of a locked run. */
static bool ferry_get_mapping(struct ferry_run *run)
{
	if (!folio_test_anon(run->src[0]))
		return ferry_mapping_supported(run->mapping);
	run->anon_vma = folio_get_anon_vma(run->src[0]);
	return run->anon_vma;
}

/* Unmap the next run of the list. Return whether the next may have memory. */
static bool ferry_unmap_next(struct ferry_runs_batch *batch,
			     struct list_head *sorted)
{
	struct ferry_run run __uninitialized;	/* 1 KiB */
	bool more;

	cond_resched();
	ferry_find_run(&run, list_first_entry(sorted, struct folio, lru),
		       sorted);
	more = ferry_get_targets(batch, &run);
	if (!run.nr)
		return false;
	if (!batch->nr_unmapped)
		batch->locked = local_clock();
	/* As in __ferry_get_destination(): the time of its limit begins. */
	if (batch->gather->active && !batch->gather->start)
		batch->gather->start = batch->locked;
	if (!ferry_lock_run(batch, &run))
		return more;
	if (ferry_get_mapping(&run))
		ferry_unmap_locked(batch, &run);
	else
		ferry_undo_run(batch, &run, FERRY_RUN_UNSUPPORTED);
	return more;
}

/* Add the time that each of @nr took to a mean, if all took @ns. */
VISIBLE_IF_KUNIT void ferry_learn(u64 *mean, s64 ns, unsigned int nr)
{
	u64 old = READ_ONCE(*mean);

	/* The clock of the last CPU may be behind: see mm/ferry/gather.c */
	ns = div_u64(max(ns, 0), nr);
	WRITE_ONCE(*mean, old ? (7 * old + ns) / 8 : ns);
}

/* Folios to unmap before a flush, so that flushes take 1/7 of the time. */
static unsigned int ferry_flush_folios(void)
{
	u64 folios = 6 * READ_ONCE(ferry_flush_ns);

	folios = div64_u64(folios, max(READ_ONCE(ferry_folio_ns), 1));
	return clamp(folios, FERRY_RUN_FOLIOS, FERRY_BATCH_FOLIOS);
}

/* Flush and move the unmapped folios. The others stay in the lists. */
static void ferry_move_unmapped(struct ferry_runs_batch *batch)
{
	u64 flush = local_clock(), move, end;

	try_to_unmap_flush();
	migrc_batch_flush(batch->migrc);
	move = local_clock();
	ferry_learn(&ferry_flush_ns, move - flush, 1);
	batch->nr_moved += __ferry_move_runs(&batch->unmapped, &batch->targets,
					     batch->reason);
	end = local_clock();
	ferry_learn(&ferry_folio_ns, end - move, batch->nr_unmapped);
	ferry_count_locked(batch->reason, end - batch->locked);
}

/*
 * Move the unmapped folios, unless a migrator is to copy the whole batch. Add
 * the others to the lists of the batch.
 */
static void ferry_finish_unmapped(struct ferry_runs_batch *batch,
				  struct list_head *unmap_folios,
				  struct list_head *dst_folios)
{
	if (batch->nr_unmapped && !batch->gather->active)
		ferry_move_unmapped(batch);
	list_splice_tail_init(&batch->unmapped, unmap_folios);
	list_splice_tail_init(&batch->targets, dst_folios);
	batch->nr_unmapped = 0;
}

/* See ferry_migrate_runs(). */
unsigned int __ferry_migrate_runs(struct list_head *from,
				  struct list_head *unmap_folios,
				  struct list_head *dst_folios,
				  new_folio_t get_new_folio,
				  free_folio_t put_new_folio,
				  unsigned long private,
				  enum migrate_reason reason,
				  struct ferry_gather *gather,
				  struct migrc_batch *migrc)
{
	struct ferry_runs_batch batch = {
		.from = from,
		.unmapped = LIST_HEAD_INIT(batch.unmapped),
		.targets = LIST_HEAD_INIT(batch.targets),
		.get_new_folio = get_new_folio,
		.put_new_folio = put_new_folio,
		.private = private,
		.reason = reason,
		.gather = gather,
		.migrc = migrc,
	};
	unsigned int part = gather->active ? UINT_MAX : ferry_flush_folios();
	LIST_HEAD(sorted);

	ferry_sort_runs(from, &sorted, batch.counts);
	if (gather->active)
		ferry_alloc_batch(&batch, &sorted);
	while (!list_empty(&sorted) && ferry_unmap_next(&batch, &sorted)) {
		if (gather->active && batch.nr_unmapped &&
		    ferry_gather_expired(gather))
			break;
		if (batch.nr_unmapped >= part)
			ferry_finish_unmapped(&batch, unmap_folios,
					      dst_folios);
	}
	ferry_finish_unmapped(&batch, unmap_folios, dst_folios);
	list_splice_tail(&sorted, from);
	ferry_run_count(batch.counts);
	return batch.nr_moved;
}
