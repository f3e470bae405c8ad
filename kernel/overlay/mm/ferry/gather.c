// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Gathering of a batch
 *
 * While a migrator is selected, migrate_pages_batch() migrates its list in
 * rounds. A round gathers, flushes, copies and moves one batch:
 *
 *   1. ferry_gather_begin() allocates the destinations of the batch, as many as
 *      limits.c allows, before the first folio is locked. An allocation may
 *      wait for reclaim and compaction, and no task waits with it.
 *   2. migrate_folio_unmap() takes the destination of its folio from
 *      ferry_get_destination(), locks both, and unmaps.
 *   3. ferry_gather_ends() ends the batch at half of batch_max_us after its
 *      first unmapping, for whatever reason it took so long, and before a folio
 *      that has no destination. The folios that are left come first in the next
 *      round. No pass of this round counts for them, so they cannot fail by it.
 *      After a batch that its time has ended, the next one is not much larger:
 *      see ferry_fits_update().
 *   4. ferry_take_uncopied() takes out the folios that the migrator of a client
 *      was required to copy and did not: see client.c. They fail.
 *   5. After the first moves, ferry_take_waited() takes out the folios whose
 *      lock a task waits for. Their move has failed, and would fail in each
 *      pass: such a task has a reference and drops it only after it had the
 *      lock. migrate_pages_batch() puts them back and unlocks them.
 *   6. ferry_gather_next() returns unused destinations and prepares the next
 *      round. The last rounds have one folio each, one of those that step 5
 *      took. It then has the same chance as without a migrator.
 *
 * Step 3 ends a batch only if folios are unmapped, and these leave the list.
 * Step 5 does not apply to a batch of one folio. So the rounds come to an end.
 *
 * No folio is locked when get_new_folio() is called: either nothing is
 * unmapped, or ferry_gather_ends() has found a destination.
 *
 * A destination that waits to be taken has its source in migrate_info. As
 * without a migrator, get_new_folio() is called once for each try of a folio:
 * @failed remembers that it failed in advance.
 *
 * A batch is gathered by these rules if a migrator was selected when
 * migrate_pages_batch() began, and ferry_may_gain() expected something of it.
 * If it is deselected before the end, the batch goes on as without it, and
 * ferry_gather_next() returns the destinations.
 *
 * Locking: none; the caller owns the lists and the folios in them.
 */

#include <linux/delay.h>
#include <linux/migrate.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/sched/clock.h>

#include "internal.h"

bool __ferry_batch_full(unsigned int nr_folios, unsigned long nr_pages,
			enum migrate_reason reason)
{
	/* Some reason has an offload migrator, not necessarily this one. */
	return !ferry_selects_offload(reason) ||
	       ferry_list_full(nr_folios, nr_pages);
}

void __ferry_gather_init(struct ferry_gather *gather, new_folio_t get_new_folio,
			 free_folio_t put_new_folio, unsigned long private,
			 enum migrate_reason reason)
{
	*gather = (struct ferry_gather) {
		.active = true,
		.reason = reason,
		.client = ferry_client_of(get_new_folio, private),
		.get_new_folio = get_new_folio,
		.put_new_folio = put_new_folio,
		.private = private,
	};
	INIT_LIST_HEAD(&gather->destinations);
	INIT_LIST_HEAD(&gather->waited);
	INIT_LIST_HEAD(&gather->waited_dst);
	INIT_LIST_HEAD(&gather->undone);
}

/**
 * ferry_gather_room() - how many more folios a batch may have
 * @gather: the gathering
 *
 * Context: any.
 * Return: their number, 0 if their bytes are at the limit.
 */
unsigned int ferry_gather_room(const struct ferry_gather *gather)
{
	if (!gather->nr)
		return FERRY_LOCKED_FOLIOS;
	if (gather->bytes >= gather->limit)
		return 0;
	return FERRY_LOCKED_FOLIOS - gather->nr;
}

/**
 * ferry_add_destination() - keep a destination until its source is unmapped
 * @gather:	the gathering
 * @src:	source
 * @dst:	destination
 *
 * Context: any, no folio of the batch locked.
 */
void ferry_add_destination(struct ferry_gather *gather, struct folio *src,
			   struct folio *dst)
{
	if (!gather->nr)
		gather->limit = ferry_limit_of(gather->reason, folio_nid(src),
					       folio_nid(dst));
	gather->nr++;
	gather->bytes += folio_size(src);
	dst->migrate_info = (unsigned long)src;
	list_add_tail(&dst->lru, &gather->destinations);
}

/* Destinations are taken in their order: it is the first but for odd cases. */
static struct folio *ferry_find_destination(struct ferry_gather *gather,
					    struct folio *src)
{
	struct folio *dst;

	list_for_each_entry(dst, &gather->destinations, lru)
		if (dst->migrate_info == (unsigned long)src)
			return dst;
	return NULL;
}

/**
 * ferry_take_destination() - take the destination that was kept for a source
 * @gather:	the gathering
 * @src:	source
 *
 * Context: any.
 * Return: the destination, or NULL if there is none.
 */
struct folio *ferry_take_destination(struct ferry_gather *gather,
				     struct folio *src)
{
	struct folio *dst = ferry_find_destination(gather, src);

	if (!dst)
		return NULL;
	/* The caller's reference to the source prevents a split. */
	VM_WARN_ON_ONCE_FOLIO(folio_order(dst) != folio_order(src), src);
	list_del(&dst->lru);
	dst->migrate_info = 0;
	return dst;
}

/* migrate_pages_batch() frees or splits the others before it allocates. */
static bool ferry_wants_destination(struct folio *src)
{
	if (folio_ref_count(src) == 1 && !page_has_movable_ops(&src->page))
		return false;
	if (folio_nr_pages(src) > 2 &&
	    !list_empty(&src->_deferred_list) &&
	    folio_test_partially_mapped(src))
		return false;
	return thp_migration_supported() || !folio_test_pmd_mappable(src);
}

/**
 * ferry_alloc_destinations() - allocate the destinations of a batch
 * @gather:	the gathering
 * @from:	the sources
 *
 * Stops when the batch is full, or at the first failure.
 *
 * Context: process context, no folio of the batch locked. May sleep as
 * get_new_folio() does.
 */
void ferry_alloc_destinations(struct ferry_gather *gather,
			      struct list_head *from)
{
	struct folio *src, *dst;

	list_for_each_entry(src, from, lru) {
		if (src == gather->failed || !ferry_gather_room(gather))
			return;
		if (!ferry_wants_destination(src))
			continue;
		cond_resched();
		dst = gather->get_new_folio(src, gather->private);
		if (!dst) {
			gather->failed = src;
			return;
		}
		ferry_add_destination(gather, src, dst);
	}
}

void __ferry_gather_begin(struct ferry_gather *gather, struct list_head *from)
{
	/* mm/ferry_runs has allocated for the list, and locked folios of it. */
	if (gather->nr)
		return;
	gather->single = list_is_singular(from);
	if (!gather->single)
		ferry_alloc_destinations(gather, from);
}

/**
 * ferry_gather_expired() - check a batch that has unmapped folios for its time
 * @gather: the gathering
 *
 * Context: any.
 * Return: true if no more folio may be unmapped.
 */
bool ferry_gather_expired(struct ferry_gather *gather)
{
	u64 now = local_clock();
	s64 max_ns = ferry_max_us(gather->reason) * NSEC_PER_USEC;

	if (!gather->start)
		gather->start = now;
	/*
	 * Half of the time: the move of base pages takes up to about twice as
	 * long as their unmapping, and the copy has a limit of its own. So the
	 * folios are locked for about twice max_ns.
	 *
	 * The clocks of two CPUs may differ a little, and each may be off by a
	 * tick where the TSC is unstable.
	 */
	gather->late = (s64)(now - gather->start) > max_ns / 2;
	return gather->late;
}

/*
 * To read the clock and to compute the limit costs a tenth of the unmapping of
 * a base page. So do it once for some unmappings.
 */
static bool ferry_gather_is_late(struct ferry_gather *gather, struct folio *src)
{
	gather->walks += 1 + folio_mapcount(src);
	if (gather->walks < FERRY_WALKS)
		return false;
	gather->walks = 0;
	return ferry_gather_expired(gather);
}

bool __ferry_gather_ends(struct ferry_gather *gather, struct folio *src,
			 struct list_head *from, struct list_head *unmap_folios)
{
	if (list_empty(unmap_folios) ||
	    (!ferry_gather_is_late(gather, src) &&
	     ferry_find_destination(gather, src)))
		return false;
	list_rotate_to_front(&src->lru, from);
	gather->more = true;
	return true;
}

struct folio *__ferry_get_destination(struct ferry_gather *gather,
				      struct folio *src)
{
	struct folio *dst = ferry_take_destination(gather, src);

	if (!dst && src != gather->failed)
		dst = gather->get_new_folio(src, gather->private);
	else if (!dst)
		gather->failed = NULL;
	if (dst && !gather->start)
		gather->start = local_clock();
	return dst;
}

bool __ferry_take_waited(struct ferry_gather *gather,
			 struct list_head *unmap_folios,
			 struct list_head *dst_folios)
{
	struct folio *src, *next, *dst, *next_dst;

	if (gather->single)
		return false;
	dst = list_first_entry(dst_folios, struct folio, lru);
	list_for_each_entry_safe(src, next, unmap_folios, lru) {
		next_dst = list_next_entry(dst, lru);
		if (folio_test_waiters(src) &&
		    !page_has_movable_ops(&src->page)) {
			list_move_tail(&src->lru, &gather->waited);
			list_move_tail(&dst->lru, &gather->waited_dst);
		}
		dst = next_dst;
	}
	if (list_empty(&gather->waited))
		return false;
	gather->unlocked = local_clock();
	return true;
}

bool __ferry_take_uncopied(struct ferry_gather *gather,
			   struct list_head *unmap_folios,
			   struct list_head *dst_folios)
{
	struct folio *src, *next, *dst, *next_dst;

	dst = list_first_entry(dst_folios, struct folio, lru);
	list_for_each_entry_safe(src, next, unmap_folios, lru) {
		next_dst = list_next_entry(dst, lru);
		if (!(dst->migrate_info & FERRY_FOLIO_COPIED)) {
			list_move_tail(&src->lru, &gather->waited);
			list_move_tail(&dst->lru, &gather->waited_dst);
		}
		dst = next_dst;
	}
	return !list_empty(&gather->waited);
}

/* Return those that the batch did not use. */
static void ferry_put_destinations(struct ferry_gather *gather)
{
	struct folio *dst, *next;

	list_for_each_entry_safe(dst, next, &gather->destinations, lru) {
		list_del(&dst->lru);
		gather->bytes -= folio_size(dst);
		dst->migrate_info = 0;
		if (gather->put_new_folio)
			gather->put_new_folio(dst, gather->private);
		else
			folio_put(dst);
	}
}

/*
 * The tasks that waited for the lock run some time after the unlock, and drop
 * their references after that. Wait no longer than a batch may make them wait.
 */
static void ferry_wait_for_references(const struct ferry_gather *gather,
				      struct folio *src)
{
	s64 max_ns = ferry_max_us(gather->reason) * NSEC_PER_USEC;

	while (folio_ref_count(src) > folio_expected_ref_count(src) + 1 &&
	       (s64)(local_clock() - gather->unlocked) < max_ns)
		usleep_range(20, 50);
}

bool __ferry_gather_next(struct ferry_gather *gather, struct list_head *from,
			 struct list_head *ret_folios)
{
	struct folio *src;

	if (gather->start)
		ferry_count_locked(gather->reason,
				   local_clock() - gather->start);
	ferry_put_destinations(gather);
	if (gather->start)
		ferry_fits_update(gather->reason, gather->bytes, gather->late);
	gather->late = false;
	gather->nr = 0;
	gather->bytes = 0;
	gather->start = 0;
	if (gather->more) {
		gather->more = false;
		return true;
	}
	if (list_empty(&gather->undone))
		return false;
	/* The folios that are still in the list have failed. */
	list_splice_tail_init(from, ret_folios);
	src = list_first_entry(&gather->undone, struct folio, lru);
	ferry_wait_for_references(gather, src);
	list_move(&src->lru, from);
	return true;
}
