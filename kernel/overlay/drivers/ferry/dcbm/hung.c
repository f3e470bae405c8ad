// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Quarantine
 *
 * What a device may still write is never freed or given to anybody, nor unmapped before the
 * driver has said that it is complete. A channel that does not complete its descriptors in time
 * is retired: it keeps its share, mapped as it is, and holds two references for each piece in
 * flight. So does a channel whose driver's word turned out false, see complete.c, for each piece
 * concerned; its share was unmapped, or the content could not have been looked at.
 *
 *   - One on the source makes the folio's move fail by migration's ordinary check of the
 *     reference count, which comes before the CPU would write to the destination: the folio
 *     stays where it was. The migrating task holds the source's lock from before the copy until
 *     the move has failed; once the lock could be had, this reference has done its work. The
 *     device may read the source after that, which harms nobody.
 *   - One on the destination outlasts migration's own, so that the memory stays allocated, and
 *     nobody's, until the device has let go.
 *
 * Life cycle of a retired channel: a work looks after it every DCBM_LOOK_MS. When the last
 * callback has come, late, the share is unmapped, the destinations are freed and the channel is
 * back in service. The unmapping leaves the content alone: a folio beside those in flight may
 * have been copied by the CPU since, and be in use. When the driver is unbound before that, the
 * channel is given up and the destinations are abandoned: that no DMA is under way can be known
 * of no device in general, and lost memory is better than foreign writes to memory in use.
 *
 * After a false completion one more callback is awaited than there will be, so that this is how
 * it always ends.
 *
 * The module cannot be unloaded while a channel is retired.
 *
 * Lock order: dcbm_mutex -> dcbm_retired_lock. Folio locks are only tried.
 */

#include <linux/bitmap.h>
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/module.h>
#include <linux/pagemap.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "internal.h"

#define DCBM_LOOK_MS	50

/* Channels to look after. */
static LIST_HEAD(dcbm_retired);
static DEFINE_SPINLOCK(dcbm_retired_lock);

static void dcbm_look(struct work_struct *work);
static DECLARE_DELAYED_WORK(dcbm_look_work, dcbm_look);

static void dcbm_look_later(void)
{
	/* Freezable: while the system sleeps no channel may be released, as its engine is off. */
	queue_delayed_work(system_freezable_wq, &dcbm_look_work, msecs_to_jiffies(DCBM_LOOK_MS));
}

static s64 dcbm_piece_pages(const struct dcbm_share *share, unsigned int piece)
{
	return share->dst[piece].length >> PAGE_SHIFT;
}

/**
 * dcbm_retire() - take a channel out of service until its callbacks have come
 * @ch: a claimed channel, with the pieces of its share that the device may still write marked as
 *	kept, and a callback to come for them; belongs to the quarantine from here on
 *
 * Context: process context, sources locked.
 */
void dcbm_retire(struct dcbm_channel *ch)
{
	struct dcbm_share *share = &ch->share;
	unsigned int piece;

	__module_get(THIS_MODULE);
	for_each_set_bit(piece, share->kept, share->nr_pieces) {
		folio_get(dcbm_piece_src(share, piece));
		folio_get(dcbm_piece_dst(share, piece));
		dcbm_count(DCBM_HUNG_PAGES, dcbm_piece_pages(share, piece));
	}
	ch->src_put = 0;
	dcbm_count(DCBM_CHANNELS_HUNG, 1);
	/* Who sees it retired finds it on the list, and the other way round. */
	scoped_guard(spinlock, &dcbm_retired_lock) {
		/* Pairs with dcbm_take(). */
		smp_store_release(&ch->retired, true);
		list_add_tail(&ch->list, &dcbm_retired);
	}
	/* For who waits for the channel to be given back. */
	wake_up_all(&dcbm_wait);
	dcbm_look_later();
}

/* Let go of the sources whose move has ended. Return true when none is left. */
static bool dcbm_put_sources(struct dcbm_channel *ch)
{
	struct dcbm_share *share = &ch->share;
	unsigned int piece;

	for_each_set_bit(piece, share->kept, share->nr_pieces) {
		struct folio *src = dcbm_piece_src(share, piece);

		if (piece < ch->src_put)
			continue;
		if (!folio_trylock(src))
			return false;
		folio_unlock(src);
		folio_put(src);
		ch->src_put = piece + 1;
	}
	return true;
}

static void dcbm_put_destinations(struct dcbm_share *share)
{
	unsigned int piece;

	for_each_set_bit(piece, share->kept, share->nr_pieces) {
		dcbm_count(DCBM_HUNG_PAGES, -dcbm_piece_pages(share, piece));
		folio_put(dcbm_piece_dst(share, piece));
	}
}

/* The last callback has come: everything is as it was before the channel was retired. */
static void dcbm_restore(struct dcbm_channel *ch)
{
	struct dcbm_share *share = &ch->share;
	unsigned int i;

	dcbm_unmap(share, ch, DMA_ATTR_SKIP_CPU_SYNC);
	dcbm_put_destinations(share);
	for (i = 0; i < share->nr_descs; i++)
		dcbm_count(DCBM_LATE_COMPLETIONS, share->descs[i].kept);
	dcbm_count(DCBM_CHANNELS_RECOVERED, 1);
	WRITE_ONCE(ch->retired, false);
}

/**
 * dcbm_recall() - take a retired channel back from the quarantine, if its callbacks have come
 * @ch: the channel; claimed, and the caller's, on success
 *
 * Context: process context, dcbm_mutex held. Waits for moves that are under way to fail.
 * Return: true on success.
 */
bool dcbm_recall(struct dcbm_channel *ch)
{
	/* Pairs with the release in dcbm_done(). */
	if (atomic_read_acquire(&ch->pending))
		return false;
	scoped_guard(spinlock, &dcbm_retired_lock)
		list_del(&ch->list);
	while (!dcbm_put_sources(ch))
		fsleep(USEC_PER_MSEC);
	dcbm_restore(ch);
	module_put(THIS_MODULE);
	return true;
}

static void dcbm_revive(struct dcbm_channel *ch)
{
	dcbm_restore(ch);
	dcbm_return(ch);
	module_put(THIS_MODULE);
}

/* Nothing can call back any more. What the device was given is lost. */
static void dcbm_bury(struct dcbm_channel *ch)
{
	kvfree(ch);
	module_put(THIS_MODULE);
}

/* Return true when the channel needs no more looking after. */
static bool dcbm_look_at(struct dcbm_channel *ch)
{
	if (!dcbm_put_sources(ch))
		return false;
	if (ch->unbound)
		dcbm_bury(ch);
	/* Pairs with the release in dcbm_done(). Without a channel nothing will complete. */
	else if (ch->chan && !atomic_read_acquire(&ch->pending))
		dcbm_revive(ch);
	else
		return false;
	return true;
}

static void dcbm_look(struct work_struct *work)
{
	struct dcbm_channel *ch, *next;
	LIST_HEAD(retired);
	LIST_HEAD(left);

	guard(mutex)(&dcbm_mutex);
	scoped_guard(spinlock, &dcbm_retired_lock)
		list_splice_init(&dcbm_retired, &retired);
	list_for_each_entry_safe(ch, next, &retired, list) {
		list_del(&ch->list);
		if (!dcbm_look_at(ch))
			list_add_tail(&ch->list, &left);
	}
	guard(spinlock)(&dcbm_retired_lock);
	list_splice_init(&left, &dcbm_retired);
	if (!list_empty(&dcbm_retired))
		dcbm_look_later();
}

/**
 * dcbm_abandon() - give up a retired channel whose driver is leaving
 * @ch: the channel; its dmaengine channel has been released
 *
 * Context: process context, dcbm_mutex held.
 */
void dcbm_abandon(struct dcbm_channel *ch)
{
	struct dcbm_share *share = &ch->share;
	unsigned int piece;

	ch->chan = NULL;
	for_each_set_bit(piece, share->kept, share->nr_pieces) {
		dcbm_count(DCBM_HUNG_PAGES, -dcbm_piece_pages(share, piece));
		dcbm_count(DCBM_LEAKED_PAGES, dcbm_piece_pages(share, piece));
	}
}

/**
 * dcbm_unbound() - note that a device's driver has left it, and calls back no more
 * @dev: the device
 *
 * Context: process context, dcbm_mutex held.
 */
void dcbm_unbound(const struct device *dev)
{
	struct dcbm_channel *ch;

	guard(spinlock)(&dcbm_retired_lock);
	list_for_each_entry(ch, &dcbm_retired, list)
		if (!ch->chan && ch->provider == dev)
			ch->unbound = true;
}

/** dcbm_quarantine_exit() - wait for the work; nothing is retired, or the module would be held */
void dcbm_quarantine_exit(void)
{
	cancel_delayed_work_sync(&dcbm_look_work);
}
