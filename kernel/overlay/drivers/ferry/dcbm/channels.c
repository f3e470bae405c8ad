// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: The channels that dcbm holds
 *
 * While dcbm is selected it holds every free channel that can copy memory,
 * public or private, up to DCBM_MAX_CHANNELS, unless the devices knob names the
 * devices that it may use. A batch claims as many as it can use, those near its
 * destination first, then those near its source. It does not wait for channels
 * that another batch has claimed.
 *
 * Most controllers that move data between memory and peripherals (DMA_SLAVE)
 * can copy memory as well. A held channel is missing to a peripheral, whose
 * driver then fails to probe or falls back to PIO. So dcbm leaves those
 * controllers alone, unless the devices knob names them.
 *
 * Life cycle of a slot:
 *
 * 1. Empty.
 * 2. Held from dma_request_channel() on: its bit in dcbm_held is set.
 * 3. Batches claim it and give it back, one at a time: dcbm_claimed.
 * 4. To remove the channel, a task clears the bit in dcbm_held, waits for the
 *    batch that uses the slot, and releases the channel.
 *
 * A hung channel stays claimed by hung.c, which also releases it if it was
 * removed in the meantime. hotplug.c decides when channels are requested and
 * released.
 *
 * Locking: dcbm_mutex serialises all changes of the set of held channels and of
 * the devices knob. Claiming takes no lock. Order: device lock, lock of a
 * driver or system_transition_mutex -> notifier chain -> dcbm_mutex ->
 * dma_list_mutex.
 */

#include <linux/bitmap.h>
#include <linux/delay.h>
#include <linux/device.h>
#include <linux/dma-mapping.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/topology.h>
#include <linux/wait.h>

#include "internal.h"

/* Far longer than a work needs from a callback to its end. */
#define DCBM_QUIRK_DELAY_MS	20

/* Serialises changes of the set of held channels, see "Locking" above. */
DEFINE_MUTEX(dcbm_mutex);

/* Of tasks that wait for a channel: dcbm_unclaim() and hung.c wake it. */
DECLARE_WAIT_QUEUE_HEAD(dcbm_wait);

/* Value of the devices knob; dcbm_mutex. */
char dcbm_devices[DCBM_DEVICES_LEN] = "all";

/* Bits of the system sleeps under way, see hotplug.c; dcbm_mutex. */
unsigned int dcbm_suspend_state;

static struct dcbm_channel *dcbm_slots[DCBM_MAX_CHANNELS];
/* Kept apart from the channels, because dcbm_order() runs before the claim. */
static int dcbm_nids[DCBM_MAX_CHANNELS];
static DECLARE_BITMAP(dcbm_held, DCBM_MAX_CHANNELS);
static DECLARE_BITMAP(dcbm_claimed, DCBM_MAX_CHANNELS);

/** dcbm_slot() - the channel in a slot; dcbm_mutex held, or the slot claimed */
struct dcbm_channel *dcbm_slot(unsigned int slot)
{
	return dcbm_slots[slot];
}

/* Does the devices knob choose the device? Slave controllers: see above. */
static bool dcbm_chosen(struct dma_device *device)
{
	const char *name = dev_name(device->dev), *word = dcbm_devices;
	size_t len = strlen(name);

	if (!strcmp(dcbm_devices, "all"))
		return !dma_has_cap(DMA_SLAVE, device->cap_mask);
	while (*word) {
		size_t span = strcspn(word, " ");

		if (span == len && !strncmp(word, name, len))
			return true;
		word += span + (word[span] == ' ');
	}
	return false;
}

static bool dcbm_chan_usable(struct dma_chan *chan)
{
	struct dma_device *device = chan->device;

	if (dcbm_bounces(dmaengine_get_dma_device(chan)))
		return false;
	return device->copy_align <= PAGE_SHIFT && dcbm_chosen(device);
}

struct dcbm_search {
	struct dma_chan *chan[DCBM_MAX_CHANNELS];
	unsigned int nr;
};

/* dma_filter_fn that records each usable channel and always returns false. */
static bool dcbm_collect(struct dma_chan *chan, void *param)
{
	struct dcbm_search *search = param;

	if (search->nr < DCBM_MAX_CHANNELS && dcbm_chan_usable(chan))
		search->chan[search->nr++] = chan;
	return false;
}

/*
 * dma_filter_fn for one recorded channel. If that was freed since, @param
 * matches no channel, or a new one at the same address that is usable too.
 */
static bool dcbm_chan_match(struct dma_chan *chan, void *param)
{
	return chan == param && dcbm_chan_usable(chan);
}

static struct dcbm_channel *dcbm_channel_alloc(struct dma_chan *chan)
{
	const struct dcbm_quirks *quirks = dcbm_quirks_of(chan);
	/* Two keep the device busy while the CPU handles a complete one. */
	unsigned int nr = min(quirks->depth, DCBM_MAX_TRANSFERS);
	struct dcbm_channel *ch;

	ch = kvzalloc_flex(*ch, transfers, nr);
	if (!ch)
		return NULL;
	ch->nr_transfers = nr;
	ch->chan = chan;
	ch->provider = chan->device->dev;
	ch->dev = dmaengine_get_dma_device(chan);
	ch->nid = dev_to_node(chan->device->dev);
	ch->quirks = quirks;
	ch->engine = dcbm_engine_get(ch->provider);
	for (struct dcbm_transfer *transfer = ch->transfers;
	     transfer < dcbm_transfers_end(ch); transfer++) {
		transfer->ch = ch;
		dcbm_windows_alloc(transfer);
	}
	return ch;
}

/* Request one channel and hold it. */
static void dcbm_add(struct dma_chan *wanted, const dma_cap_mask_t *mask)
{
	unsigned int slot = 0;
	struct dma_chan *chan;

	while (slot < DCBM_MAX_CHANNELS && dcbm_slots[slot])
		slot++;
	if (slot == DCBM_MAX_CHANNELS)
		return;
	chan = dma_request_channel(*mask, dcbm_chan_match, wanted);
	if (!chan)
		return;
	dcbm_slots[slot] = dcbm_channel_alloc(chan);
	if (!dcbm_slots[slot]) {
		dma_release_channel(chan);
		return;
	}
	dcbm_slots[slot]->slot = slot;
	WRITE_ONCE(dcbm_nids[slot], dcbm_slots[slot]->nid);
	/*
	 * Pairs with test_bit_acquire() in dcbm_try_claim(): a CPU that sees
	 * the bit sees the channel.
	 */
	smp_mb__before_atomic();
	set_bit(slot, dcbm_held);
}

/**
 * dcbm_request_channels() - request all usable channels
 *
 * A hung channel that was removed is held again.
 *
 * Context: process context, dcbm_mutex held.
 */
void dcbm_request_channels(void)
{
	struct dcbm_search *search __free(kfree) = kzalloc_obj(*search);
	dma_cap_mask_t mask;
	unsigned int i;

	lockdep_assert_held(&dcbm_mutex);
	if (!search || dcbm_suspend_state)
		return;
	for (i = 0; i < DCBM_MAX_CHANNELS; i++)
		if (dcbm_slots[i] && dcbm_chan_usable(dcbm_slots[i]->chan))
			set_bit(i, dcbm_held);
	dma_cap_zero(mask);
	dma_cap_set(DMA_MEMCPY, mask);
	dma_request_channel(mask, dcbm_collect, search);
	for (i = 0; i < search->nr; i++)
		dcbm_add(search->chan[i], &mask);
}

/** dcbm_have_channels() - is any channel held? dcbm_mutex held */
bool dcbm_have_channels(void)
{
	return !bitmap_empty(dcbm_held, DCBM_MAX_CHANNELS);
}

/** dcbm_quirk_delay() - wait until a driver has stopped using descriptors */
void dcbm_quirk_delay(const struct dcbm_channel *ch)
{
	if (ch->quirks->late_desc_use)
		msleep(DCBM_QUIRK_DELAY_MS);
}

/**
 * dcbm_channel_detach() - empty the slot of a channel
 * @ch: a claimed channel; its memory stays the caller's
 *
 * Context: process context, dcbm_mutex held.
 */
void dcbm_channel_detach(struct dcbm_channel *ch)
{
	dcbm_engine_put(ch->engine);
	dcbm_slots[ch->slot] = NULL;
	clear_bit_unlock(ch->slot, dcbm_claimed);
}

/**
 * dcbm_channel_free() - release and free a channel
 * @ch: a claimed channel with nothing in flight
 *
 * Context: process context, dcbm_mutex held.
 */
void dcbm_channel_free(struct dcbm_channel *ch)
{
	dmaengine_synchronize(ch->chan);
	dcbm_quirk_delay(ch);
	for (struct dcbm_transfer *transfer = ch->transfers;
	     transfer < dcbm_transfers_end(ch); transfer++)
		dcbm_windows_free(transfer);
	dma_release_channel(ch->chan);
	dcbm_channel_detach(ch);
	kvfree(ch);
}

/**
 * dcbm_unpublish() - keep batches off a channel, wait for the one that uses it
 * @ch: the channel
 *
 * Context: process context, dcbm_mutex held.
 * Return: true if the caller has claimed the channel, false if hung.c has it.
 */
bool dcbm_unpublish(struct dcbm_channel *ch)
{
	bool claimed;

	lockdep_assert_held(&dcbm_mutex);
	clear_bit(ch->slot, dcbm_held);
	/*
	 * Pairs with dcbm_try_claim(): a CPU that claims the slot from now on
	 * sees the bit cleared.
	 */
	smp_mb__after_atomic();
	/* A batch takes no lock of dcbm, and its time is limited. */
	wait_event(dcbm_wait,
		   (claimed = !test_and_set_bit_lock(ch->slot, dcbm_claimed)) ||
		   /* Pairs with dcbm_channel_hung(): its stores are visible. */
		   smp_load_acquire(&ch->hung));
	return claimed;
}

/**
 * dcbm_release_channels() - release channels; a hung one is left to hung.c
 * @all: all of them; otherwise those that the devices knob does not choose, or
 *	whose DMA may go through bounce buffers since memory was added
 *
 * Context: process context, dcbm_mutex held. Waits for batches in flight.
 */
void dcbm_release_channels(bool all)
{
	unsigned int i;

	lockdep_assert_held(&dcbm_mutex);
	for (i = 0; i < DCBM_MAX_CHANNELS; i++) {
		struct dcbm_channel *ch = dcbm_slots[i];

		if (ch && (all || !dcbm_chan_usable(ch->chan)) &&
		    dcbm_unpublish(ch))
			dcbm_channel_free(ch);
	}
}

/** dcbm_unclaim() - give a claimed slot back */
void dcbm_unclaim(unsigned int slot)
{
	clear_bit_unlock(slot, dcbm_claimed);
	/* wake_up_all() must see each task that waited before the clearing. */
	smp_mb__after_atomic();
	wake_up_all(&dcbm_wait);
}

/* Return DCBM_NR_COUNTERS if the channel is claimed, or why it is not. */
static enum dcbm_counter dcbm_try_claim(unsigned int slot)
{
	enum dcbm_counter why = DCBM_NR_COUNTERS;

	if (!test_bit(slot, dcbm_held) ||
	    test_and_set_bit_lock(slot, dcbm_claimed))
		return DCBM_REJECTED_BUSY;
	/* If it was removed since, dcbm_unpublish() waits for this claim. */
	if (!test_bit_acquire(slot, dcbm_held))
		why = DCBM_REJECTED_BUSY;
	else if (dcbm_engine_rests(dcbm_slots[slot]->engine))
		why = DCBM_REJECTED_RESTING;
	if (why != DCBM_NR_COUNTERS)
		dcbm_unclaim(slot);
	return why;
}

/** dcbm_give_back() - give all channels of a job back */
void dcbm_give_back(struct dcbm_job *job)
{
	while (job->nr)
		dcbm_unclaim(job->ch[--job->nr]->slot);
}

/**
 * dcbm_channel_return() - return a recovered channel to service
 * @ch: the channel, claimed; freed if it was removed while it hung
 *
 * Context: process context, dcbm_mutex held.
 */
void dcbm_channel_return(struct dcbm_channel *ch)
{
	lockdep_assert_held(&dcbm_mutex);
	if (test_bit(ch->slot, dcbm_held))
		dcbm_unclaim(ch->slot);
	else
		dcbm_channel_free(ch);
}

static unsigned int dcbm_node_distance(int from, int to)
{
	if (from == NUMA_NO_NODE || to == NUMA_NO_NODE)
		return U8_MAX;
	return node_distance(from, to);
}

/* The destination's distance counts first: writes cost more than reads. */
static unsigned int dcbm_distance(unsigned int slot, int dst, int src)
{
	int nid = READ_ONCE(dcbm_nids[slot]);

	return dcbm_node_distance(nid, dst) << 8 | dcbm_node_distance(nid, src);
}

/* Sort the slots that are held, nearest first. Return their number. */
static unsigned int dcbm_order(unsigned char *slots, int dst, int src)
{
	unsigned int slot, k, nr = 0;

	for_each_set_bit(slot, dcbm_held, DCBM_MAX_CHANNELS) {
		unsigned int distance = dcbm_distance(slot, dst, src);

		for (k = nr++; k; k--) {
			if (dcbm_distance(slots[k - 1], dst, src) <= distance)
				break;
			slots[k] = slots[k - 1];
		}
		slots[k] = slot;
	}
	return nr;
}

/**
 * dcbm_claim() - claim channels for a job
 * @job:	the job, without channels; @job->nr stays 0 if none is free
 * @wanted:	maximum number of channels
 *
 * Context: any. Does not wait.
 * Return: if @job->nr is 0, why.
 */
enum dcbm_counter dcbm_claim(struct dcbm_job *job, unsigned int wanted)
{
	const struct ferry_pair *pair = job->batch->pairs;
	enum dcbm_counter why, last = DCBM_REJECTED_BUSY;
	unsigned char slots[DCBM_MAX_CHANNELS];
	unsigned int i, nr;

	nr = dcbm_order(slots, folio_nid(pair->dst), folio_nid(pair->src));
	if (!nr)
		last = DCBM_REJECTED_NO_CHANNEL;
	for (i = 0; i < nr && job->nr < wanted; i++) {
		why = dcbm_try_claim(slots[i]);
		if (why == DCBM_NR_COUNTERS)
			job->ch[job->nr++] = dcbm_slots[slots[i]];
		else if (why == DCBM_REJECTED_RESTING)
			last = why;
	}
	return last;
}
