// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Hung channels
 *
 * Memory that a device may still write must not be freed, reused or unmapped
 * before the driver has said that the copy is complete. A channel that does not
 * complete its descriptors in time is hung: it keeps its busy transfers, mapped
 * as they are, and holds two references for each segment in flight. So does a
 * channel whose driver reported a false completion (complete.c), for each
 * segment concerned; that transfer was unmapped for the verification.
 *
 *   - The reference on the source makes the folio's move fail in migration's
 *     ordinary check of the reference count, which comes before the CPU would
 *     write to the destination: the folio stays where it was. The migrating
 *     task holds the source's lock from before the copy until the move has
 *     failed. Once hung.c could take the lock, the reference has served its
 *     purpose and is dropped. The device may read the source after that, which
 *     does no harm.
 *   - The reference on the destination outlasts migration's own, so that the
 *     memory stays allocated and unused until the device has finished.
 *
 * Life cycle of a hung channel:
 *
 * 1. dcbm_channel_hung() takes the references and puts it on the list.
 * 2. A work checks it every DCBM_HUNG_WORK_MS.
 * 3. When all callbacks have come, late, the work unmaps the transfers, frees
 *    the destinations and returns the channel to service. The unmapping leaves
 *    the content alone, because the CPU may have copied a folio beside those in
 *    flight since, and that folio may be in use.
 * 4. If the channel goes before that, the transfers are unmapped, and the
 *    channel is freed when its driver is unbound. Behind an IOMMU the unmapping
 *    ends the device's access, so that the destinations can be freed, too.
 *    Otherwise they are leaked. It cannot be known that a device has no DMA
 *    under way: even one that must not write now, because its bus mastering is
 *    off, may continue when a driver turns that on again. Lost memory is better
 *    than DMA to memory in use.
 *
 * Leaked pages can neither be moved nor freed, so their memory block cannot go
 * offline any more. A message in the log tells how many they are.
 *
 * After a false completion the channel always ends by step 4.
 *
 * The module cannot be unloaded while a channel hangs.
 *
 * Locking: dcbm_hung_lock protects the list and the @unbinding marks on it;
 * order dcbm_mutex -> dcbm_hung_lock. Folio locks and device locks are only
 * tried.
 */

#include <linux/bitmap.h>
#include <linux/delay.h>
#include <linux/device.h>
#include <linux/dma-mapping.h>
#include <linux/module.h>
#include <linux/pagemap.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "internal.h"

#define DCBM_HUNG_WORK_MS	50

static LIST_HEAD(dcbm_hung_channels);
static DEFINE_SPINLOCK(dcbm_hung_lock);

static void dcbm_hung_fn(struct work_struct *work);
static DECLARE_DELAYED_WORK(dcbm_hung_work, dcbm_hung_fn);

static void dcbm_queue_hung_work(void)
{
	/*
	 * Freezable: while the system sleeps no channel may be released,
	 * because its engine is off.
	 */
	queue_delayed_work(system_freezable_wq, &dcbm_hung_work,
			   msecs_to_jiffies(DCBM_HUNG_WORK_MS));
}

static s64 dcbm_segment_pages(const struct dcbm_transfer *transfer,
			      unsigned int segment)
{
	return transfer->dst[segment].length >> PAGE_SHIFT;
}

/**
 * dcbm_all_done() - have all callbacks of a hung channel come?
 * @ch: the channel
 *
 * Context: any.
 */
bool dcbm_all_done(const struct dcbm_channel *ch)
{
	if (ch->lost)
		return false;
	/* Pairs with the release in dcbm_desc_done(). */
	for (const struct dcbm_transfer *transfer = ch->transfers;
	     transfer < dcbm_transfers_end(ch); transfer++)
		if (transfer->busy && atomic_read_acquire(&transfer->pending))
			return false;
	return true;
}

/**
 * dcbm_channel_hung() - take a channel out of service until its callbacks come
 * @ch: a claimed channel; its busy transfers have the segments that the device
 *	may still write marked in flight; hung.c owns it from now on
 *
 * Context: process context, sources locked.
 */
void dcbm_channel_hung(struct dcbm_channel *ch)
{
	unsigned int i;

	__module_get(THIS_MODULE);
	for (struct dcbm_transfer *transfer = ch->transfers;
	     transfer < dcbm_transfers_end(ch); transfer++) {
		unsigned int nr = transfer->nr_segments;

		if (!transfer->busy)
			continue;
		for_each_set_bit(i, transfer->in_flight, nr) {
			folio_get(dcbm_src_folio(transfer, i));
			folio_get(dcbm_dst_folio(transfer, i));
			dcbm_count(DCBM_HUNG_PAGES,
				   dcbm_segment_pages(transfer, i));
		}
		transfer->src_put = 0;
	}
	dcbm_count(DCBM_CHANNELS_HUNG, 1);
	/* @hung is set if and only if the channel is on the list. */
	scoped_guard(spinlock, &dcbm_hung_lock) {
		/* Pairs with dcbm_unpublish(). */
		smp_store_release(&ch->hung, true);
		list_add_tail(&ch->list, &dcbm_hung_channels);
	}
	/* dcbm_unpublish() may wait for the claim, which hung.c keeps. */
	wake_up_all(&dcbm_wait);
	dcbm_queue_hung_work();
}

/* Put the sources whose move has ended. Return true when none is left. */
static bool dcbm_put_sources(struct dcbm_transfer *transfer)
{
	unsigned int i;

	/* Without a reference the struct page may be gone, with its node. */
	i = transfer->src_put;
	for_each_set_bit_from(i, transfer->in_flight, transfer->nr_segments) {
		struct folio *src = dcbm_src_folio(transfer, i);

		if (!folio_trylock(src))
			return false;
		folio_unlock(src);
		folio_put(src);
		transfer->src_put = i + 1;
	}
	return true;
}

static bool dcbm_put_all_sources(struct dcbm_channel *ch)
{
	bool all = true;

	for (struct dcbm_transfer *transfer = ch->transfers;
	     transfer < dcbm_transfers_end(ch); transfer++)
		if (transfer->busy && !dcbm_put_sources(transfer))
			all = false;
	return all;
}

static void dcbm_transfer_recovered(struct dcbm_transfer *transfer)
{
	unsigned int i;

	dcbm_unmap(transfer, DMA_ATTR_SKIP_CPU_SYNC);
	for_each_set_bit(i, transfer->in_flight, transfer->nr_segments) {
		dcbm_count(DCBM_HUNG_PAGES, -dcbm_segment_pages(transfer, i));
		folio_put(dcbm_dst_folio(transfer, i));
	}
	for (i = 0; i < transfer->nr_descs; i++)
		dcbm_count(DCBM_LATE_COMPLETIONS,
			   transfer->descs[i].in_flight);
	transfer->busy = false;
}

/* All descriptors completed: undo dcbm_channel_hung(). */
static void dcbm_channel_recovered(struct dcbm_channel *ch)
{
	for (struct dcbm_transfer *transfer = ch->transfers;
	     transfer < dcbm_transfers_end(ch); transfer++)
		if (transfer->busy)
			dcbm_transfer_recovered(transfer);
	dcbm_count(DCBM_CHANNELS_RECOVERED, 1);
	ch->claimed = 0;
	WRITE_ONCE(ch->hung, false);
}

/**
 * dcbm_try_recover() - take a hung channel back if its callbacks have come
 * @ch: the channel; claimed by the caller on success
 *
 * Context: process context, dcbm_mutex held. Waits for moves that are under way
 * to fail.
 * Return: true on success.
 */
bool dcbm_try_recover(struct dcbm_channel *ch)
{
	if (!dcbm_all_done(ch))
		return false;
	scoped_guard(spinlock, &dcbm_hung_lock)
		list_del(&ch->list);
	while (!dcbm_put_all_sources(ch))
		fsleep(USEC_PER_MSEC);
	dcbm_channel_recovered(ch);
	module_put(THIS_MODULE);
	return true;
}

/*
 * Has the driver of an abandoned channel been unbound, so that no callback can
 * come? The lock of the device is held from before the notification until then.
 * idxd unregisters its device without it, when its queues have no driver.
 */
static bool dcbm_is_unbound(const struct dcbm_channel *ch)
{
	if (!ch->unbinding || !device_trylock(ch->provider))
		return false;
	device_unlock(ch->provider);
	return true;
}

/* Return true when the channel hangs no more, or is freed. */
static bool dcbm_check_hung(struct dcbm_channel *ch)
{
	if (!dcbm_put_all_sources(ch))
		return false;
	if (dcbm_is_unbound(ch)) {
		put_device(ch->provider);
		kvfree(ch);
	} else if (ch->chan && dcbm_all_done(ch)) {
		dcbm_channel_recovered(ch);
		dcbm_channel_return(ch);
	} else {
		return false;
	}
	module_put(THIS_MODULE);
	return true;
}

static void dcbm_hung_fn(struct work_struct *work)
{
	struct dcbm_channel *ch, *next;
	LIST_HEAD(check);
	LIST_HEAD(hung);

	guard(mutex)(&dcbm_mutex);
	scoped_guard(spinlock, &dcbm_hung_lock)
		list_splice_init(&dcbm_hung_channels, &check);
	list_for_each_entry_safe(ch, next, &check, list) {
		list_del(&ch->list);
		if (!dcbm_check_hung(ch))
			list_add_tail(&ch->list, &hung);
	}
	guard(spinlock)(&dcbm_hung_lock);
	list_splice_init(&hung, &dcbm_hung_channels);
	if (!list_empty(&dcbm_hung_channels))
		dcbm_queue_hung_work();
}

/* Free the destinations, or leak them. Return the pages leaked. */
static s64 dcbm_abandon_transfer(struct dcbm_transfer *transfer)
{
	bool stopped = dcbm_unmap_hung(transfer);
	s64 pages, leaked = 0;
	unsigned int i;

	for_each_set_bit(i, transfer->in_flight, transfer->nr_segments) {
		pages = dcbm_segment_pages(transfer, i);
		dcbm_count(DCBM_HUNG_PAGES, -pages);
		if (!stopped) {
			leaked += pages;
			continue;
		}
		dcbm_count(DCBM_RELEASED_PAGES, pages);
		folio_put(dcbm_dst_folio(transfer, i));
	}
	return leaked;
}

/**
 * dcbm_abandon() - free or leak the memory of a hung channel that goes
 * @ch: the channel; its dmaengine channel has been released, or is kept
 *
 * Context: process context, dcbm_mutex held; the driver is still bound.
 */
void dcbm_abandon(struct dcbm_channel *ch)
{
	s64 leaked = 0;

	ch->chan = NULL;
	get_device(ch->provider);
	for (struct dcbm_transfer *transfer = ch->transfers;
	     transfer < dcbm_transfers_end(ch); transfer++) {
		if (transfer->busy)
			leaked += dcbm_abandon_transfer(transfer);
		else
			dcbm_windows_free(transfer);
	}
	if (!leaked)
		return;
	dcbm_count(DCBM_LEAKED_PAGES, leaked);
	dev_warn(ch->provider,
		 "dcbm: unbound while it may write memory: %lld pages are lost until the next boot, and their memory blocks cannot go offline\n",
		 leaked);
}

/**
 * dcbm_hung_unbinding() - the driver of abandoned channels is being unbound
 * @provider: the device
 *
 * Context: process context, dcbm_mutex and the lock of the device held.
 */
void dcbm_hung_unbinding(const struct device *provider)
{
	struct dcbm_channel *ch;

	guard(spinlock)(&dcbm_hung_lock);
	list_for_each_entry(ch, &dcbm_hung_channels, list)
		if (!ch->chan && ch->provider == provider)
			ch->unbinding = true;
}

/** dcbm_hung_exit() - stop the work: no channel hangs, or may recover */
void dcbm_hung_exit(void)
{
	cancel_delayed_work_sync(&dcbm_hung_work);
}
