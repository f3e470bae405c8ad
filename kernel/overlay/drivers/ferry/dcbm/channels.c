// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: The channels that are held
 *
 * While dcbm is selected it holds every free channel that can copy memory, public or private,
 * up to DCBM_MAX_CHANNELS, unless the devices knob names those it may have. A batch claims as
 * many as it can use, those near its destination first, then those near its source. What is
 * claimed by another batch is not waited for.
 *
 * Life cycle of a slot: empty; held, from dma_request_channel() on; claimed and given back by
 * batches, one at a time; removed by whoever clears its bit in dcbm_held, waits for the batch
 * in it to end, and releases the channel. A retired channel stays claimed by the quarantine,
 * which also releases it if it was removed meanwhile.
 *
 * Channels that are asked back for reasons other than a knob's are hotplug.c's business.
 *
 * Lock order: dcbm_mutex -> dma_list_mutex.
 */

#include <linux/bitmap.h>
#include <linux/delay.h>
#include <linux/device.h>
#include <linux/dma-mapping.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/sysfs.h>
#include <linux/topology.h>
#include <linux/wait.h>

#include "internal.h"

struct dcbm_tuning dcbm_tuning = {
	/* The batch copy series saw little gain beyond 8 to 12. */
	.channels = 16,
	/* Far more than a batch takes: after it the channel is out of service. */
	.timeout_ms = 1000,
	.verify = DCBM_VERIFY_AUTO,
};

atomic64_t dcbm_counters[DCBM_NR_COUNTERS];

/* Far longer than a work needs from a callback to its end. */
#define DCBM_LINGER_MS		20
#define DCBM_SENTINEL_LEN	64
/* How long an unbinding waits for a device that has not answered. */
#define DCBM_LEAVE_MS		1000

/* Serialises all changes of what is held. */
DEFINE_MUTEX(dcbm_mutex);

static struct dcbm_channel *dcbm_slots[DCBM_MAX_CHANNELS];
/* Apart from the channels, so that they can be put in order before they are claimed. */
static int dcbm_nids[DCBM_MAX_CHANNELS];
static DECLARE_BITMAP(dcbm_held, DCBM_MAX_CHANNELS);
static DECLARE_BITMAP(dcbm_claimed, DCBM_MAX_CHANNELS);
static bool dcbm_enabled;
static char dcbm_devices[PAGE_SIZE / 4] = "all";

/** dcbm_slot() - the channel in a slot, or NULL; dcbm_mutex held, or the slot claimed */
struct dcbm_channel *dcbm_slot(unsigned int slot)
{
	return dcbm_slots[slot];
}

/* Is the device among those that may be used? */
static bool dcbm_named(const struct device *dev)
{
	const char *name = dev_name(dev), *word = dcbm_devices;
	size_t len = strlen(name);

	if (!strcmp(dcbm_devices, "all"))
		return true;
	while (*word) {
		size_t span = strcspn(word, " ");

		if (span == len && !strncmp(word, name, len))
			return true;
		word += span + (word[span] == ' ');
	}
	return false;
}

static bool dcbm_suits(const struct dma_chan *chan)
{
	struct dma_device *device = chan->device;

	/* Not while its driver is in probe(), which may fail without a word to us. */
	if (!device_is_bound(device->dev) || !dcbm_stays(device))
		return false;
	/* Of idxd: its channels come and go by themselves, on a bus of their own. */
	if (dma_has_cap(DMA_COMPLETION_NO_ORDER, device->cap_mask))
		return false;
	return device->copy_align <= PAGE_SHIFT && dcbm_named(device->dev);
}

struct dcbm_search {
	struct dma_chan *chan[DCBM_MAX_CHANNELS];
	unsigned int nr;
};

/* A filter that takes none, and remembers all that would do. */
static bool dcbm_collect(struct dma_chan *chan, void *param)
{
	struct dcbm_search *search = param;

	if (search->nr < DCBM_MAX_CHANNELS && dcbm_suits(chan))
		search->chan[search->nr++] = chan;
	return false;
}

/* The channel may have gone since: then nothing equals @param, or something that suits as well. */
static bool dcbm_is(struct dma_chan *chan, void *param)
{
	return chan == param && dcbm_suits(chan);
}

static int dcbm_map_sentinel(struct dcbm_channel *ch)
{
	if (ch->engine->proof != DCBM_PROOF_SENTINEL)
		return 0;
	ch->sentinel = kzalloc(2 * DCBM_SENTINEL_LEN, GFP_KERNEL);
	if (!ch->sentinel)
		return -ENOMEM;
	ch->sentinel_dma = dma_map_single(ch->dev, ch->sentinel, 2 * DCBM_SENTINEL_LEN,
					  DMA_BIDIRECTIONAL);
	if (dma_mapping_error(ch->dev, ch->sentinel_dma)) {
		kfree(ch->sentinel);
		return -EIO;
	}
	ch->last = (struct dcbm_desc) {
		.ch = ch, .src = ch->sentinel_dma, .dst = ch->sentinel_dma + DCBM_SENTINEL_LEN,
		.len = DCBM_SENTINEL_LEN, .status = -EAGAIN,
	};
	return 0;
}

static void dcbm_unmap_sentinel(struct dcbm_channel *ch)
{
	if (!ch->sentinel)
		return;
	dma_unmap_single(ch->dev, ch->sentinel_dma, 2 * DCBM_SENTINEL_LEN, DMA_BIDIRECTIONAL);
	kfree(ch->sentinel);
}

static struct dcbm_channel *dcbm_channel_alloc(struct dma_chan *chan)
{
	struct dcbm_channel *ch = kvzalloc_obj(*ch);

	if (!ch)
		return NULL;
	ch->chan = chan;
	ch->provider = chan->device->dev;
	ch->dev = dmaengine_get_dma_device(chan);
	ch->nid = dev_to_node(chan->device->dev);
	ch->engine = dcbm_engine(chan);
	ch->rest_until = jiffies;
	if (dcbm_map_sentinel(ch)) {
		kvfree(ch);
		return NULL;
	}
	dcbm_windows_alloc(ch);
	return ch;
}

/* Return true if it was taken. */
static bool dcbm_add(struct dma_chan *wanted, const dma_cap_mask_t *mask)
{
	unsigned int slot = 0;
	struct dma_chan *chan;

	while (slot < DCBM_MAX_CHANNELS && dcbm_slots[slot])
		slot++;
	if (slot == DCBM_MAX_CHANNELS)
		return false;
	chan = dma_request_channel(*mask, dcbm_is, wanted);
	if (!chan)
		return false;
	dcbm_slots[slot] = dcbm_channel_alloc(chan);
	if (!dcbm_slots[slot]) {
		dma_release_channel(chan);
		return false;
	}
	dcbm_slots[slot]->slot = slot;
	WRITE_ONCE(dcbm_nids[slot], dcbm_slots[slot]->nid);
	/* Pairs with test_bit_acquire() in dcbm_try_claim(): who sees it held sees the channel. */
	smp_mb__before_atomic();
	set_bit(slot, dcbm_held);
	return true;
}

/*
 * Take all channels there are. A retired one that was removed is held again. Return how many
 * are new.
 */
static unsigned int dcbm_acquire(void)
{
	struct dcbm_search *search __free(kfree) = kzalloc_obj(*search);
	unsigned int i, added = 0;
	dma_cap_mask_t mask;

	lockdep_assert_held(&dcbm_mutex);
	if (!search || dcbm_asleep())
		return 0;
	for (i = 0; i < DCBM_MAX_CHANNELS; i++)
		if (dcbm_slots[i] && dcbm_named(dcbm_slots[i]->provider))
			set_bit(i, dcbm_held);
	dma_cap_zero(mask);
	dma_cap_set(DMA_MEMCPY, mask);
	dma_request_channel(mask, dcbm_collect, search);
	for (i = 0; i < search->nr; i++)
		added += dcbm_add(search->chan[i], &mask);
	return added;
}

static void dcbm_linger(const struct dcbm_channel *ch)
{
	if (ch->engine->lingers)
		msleep(DCBM_LINGER_MS);
}

static void dcbm_free(struct dcbm_channel *ch)
{
	dmaengine_synchronize(ch->chan);
	dcbm_linger(ch);
	dcbm_windows_free(ch);
	dcbm_unmap_sentinel(ch);
	dma_release_channel(ch->chan);
	dcbm_slots[ch->slot] = NULL;
	clear_bit_unlock(ch->slot, dcbm_claimed);
	kvfree(ch);
}

/*
 * Claim a slot that no batch can claim any more; false if the quarantine has it. A batch takes no
 * lock of ours, and ends DCBM_BATCH_TIMEOUTS + 1 timeouts after it began, but for the CPU's work.
 */
static bool dcbm_take(struct dcbm_channel *ch)
{
	bool taken;

	wait_event(dcbm_wait, (taken = !test_and_set_bit_lock(ch->slot, dcbm_claimed)) ||
		   /* Pairs with dcbm_retire(): what it came to is seen, too. */
		   smp_load_acquire(&ch->retired));
	return taken;
}

/* Keep batches off a channel. Return false if the quarantine has it. */
static bool dcbm_unhold(struct dcbm_channel *ch)
{
	lockdep_assert_held(&dcbm_mutex);
	clear_bit(ch->slot, dcbm_held);
	/* Pairs with dcbm_try_claim(): whoever claims from here on sees it gone. */
	smp_mb__after_atomic();
	return dcbm_take(ch);
}

/* Stop using a channel. A retired one is left to the quarantine, which frees it in time. */
static void dcbm_remove(struct dcbm_channel *ch)
{
	if (dcbm_unhold(ch))
		dcbm_free(ch);
}

/**
 * dcbm_return() - give back a channel that has been in quarantine
 * @ch: the channel
 *
 * Context: process context, dcbm_mutex held.
 */
void dcbm_return(struct dcbm_channel *ch)
{
	lockdep_assert_held(&dcbm_mutex);
	if (test_bit(ch->slot, dcbm_held))
		dcbm_unclaim(ch);
	else
		dcbm_free(ch);
}

/**
 * dcbm_hold() - acquire the channels
 *
 * Context: process context. Takes dcbm_mutex.
 * Return: 0; -ENODEV if there is none, -EBUSY if the system is about to sleep.
 */
int dcbm_hold(void)
{
	guard(mutex)(&dcbm_mutex);
	if (dcbm_asleep())
		return -EBUSY;
	dcbm_acquire();
	dcbm_enabled = !bitmap_empty(dcbm_held, DCBM_MAX_CHANNELS);
	if (!dcbm_enabled)
		return -ENODEV;
	dcbm_calibrate();
	return 0;
}

static void dcbm_remove_unnamed(bool all)
{
	unsigned int i;

	for (i = 0; i < DCBM_MAX_CHANNELS; i++)
		if (dcbm_slots[i] && (all || !dcbm_named(dcbm_slots[i]->provider)))
			dcbm_remove(dcbm_slots[i]);
}

/** dcbm_release_all() - release the channels; takes dcbm_mutex, waits for batches in flight */
void dcbm_release_all(void)
{
	guard(mutex)(&dcbm_mutex);
	dcbm_enabled = false;
	dcbm_remove_unnamed(true);
}

/**
 * dcbm_give_back() - release the channels for a while; dcbm stays selected, and refuses batches
 *
 * Context: process context, dcbm_mutex held. Waits for batches in flight. Retired channels stay
 * with the quarantine.
 */
void dcbm_give_back(void)
{
	lockdep_assert_held(&dcbm_mutex);
	dcbm_remove_unnamed(true);
}

/**
 * dcbm_refresh() - if dcbm is selected, acquire the channels that may be had by now
 *
 * Context: process context, dcbm_mutex held.
 */
void dcbm_refresh(void)
{
	lockdep_assert_held(&dcbm_mutex);
	if (!dcbm_enabled)
		return;
	dcbm_remove_unnamed(false);
	if (dcbm_acquire())
		dcbm_calibrate();
}

/** dcbm_recalibrate() - measure again, as a knob changes what a batch costs; takes dcbm_mutex */
void dcbm_recalibrate(void)
{
	guard(mutex)(&dcbm_mutex);
	if (dcbm_enabled)
		dcbm_calibrate();
}

/**
 * dcbm_set_devices() - choose the devices whose channels may be used
 * @names: "all", or device names separated by blanks or commas
 *
 * Context: process context. Takes dcbm_mutex.
 * Return: 0; -EINVAL if @names has no name or is too long; -EBUSY if the system is about to
 * sleep; -ENODEV if dcbm is selected and none of the devices has a free channel: then the choice
 * before is in force again.
 */
int dcbm_set_devices(const char *names)
{
	char *old __free(kfree) = kmalloc(sizeof(dcbm_devices), GFP_KERNEL);

	if (!old)
		return -ENOMEM;
	if (!names[strspn(names, " ,")] || strlen(names) >= sizeof(dcbm_devices))
		return -EINVAL;
	guard(mutex)(&dcbm_mutex);
	if (dcbm_asleep())
		return -EBUSY;
	strscpy(old, dcbm_devices, sizeof(dcbm_devices));
	strscpy(dcbm_devices, names, sizeof(dcbm_devices));
	strreplace(dcbm_devices, ',', ' ');
	dcbm_refresh();
	if (!dcbm_enabled || !bitmap_empty(dcbm_held, DCBM_MAX_CHANNELS))
		return 0;
	strscpy(dcbm_devices, old, sizeof(dcbm_devices));
	dcbm_refresh();
	return -ENODEV;
}

/** dcbm_show_devices() - what dcbm_set_devices() was given, on a sysfs page */
ssize_t dcbm_show_devices(char *buf)
{
	guard(mutex)(&dcbm_mutex);
	return sysfs_emit(buf, "%s\n", dcbm_devices);
}

static void dcbm_let_go(unsigned int slot)
{
	clear_bit_unlock(slot, dcbm_claimed);
	/* Whoever began to wait before the bit was cleared must be seen by wake_up_all(). */
	smp_mb__after_atomic();
	wake_up_all(&dcbm_wait);
}

static bool dcbm_try_claim(unsigned int slot)
{
	if (!test_bit(slot, dcbm_held) || test_and_set_bit_lock(slot, dcbm_claimed))
		return false;
	/* Removed since: whoever does that waits for the claim to be given back. */
	if (test_bit_acquire(slot, dcbm_held) &&
	    time_is_before_eq_jiffies(dcbm_slots[slot]->rest_until))
		return true;
	dcbm_let_go(slot);
	return false;
}

/** dcbm_unclaim() - give a claimed channel back */
void dcbm_unclaim(struct dcbm_channel *ch)
{
	dcbm_let_go(ch->slot);
}

static unsigned int dcbm_distance(int from, int to)
{
	return from == NUMA_NO_NODE || to == NUMA_NO_NODE ? U8_MAX : node_distance(from, to);
}

/* Near the destination first, then near the source: writes cost more than reads. */
static unsigned int dcbm_remoteness(unsigned int slot, int dst, int src)
{
	int nid = READ_ONCE(dcbm_nids[slot]);

	return dcbm_distance(nid, dst) << 8 | dcbm_distance(nid, src);
}

/* The slots that are held, nearest first. Return their number. */
static unsigned int dcbm_order(unsigned char *slots, int dst, int src)
{
	unsigned int slot, k, nr = 0;

	for_each_set_bit(slot, dcbm_held, DCBM_MAX_CHANNELS) {
		unsigned int far = dcbm_remoteness(slot, dst, src);

		for (k = nr++; k && dcbm_remoteness(slots[k - 1], dst, src) > far; k--)
			slots[k] = slots[k - 1];
		slots[k] = slot;
	}
	return nr;
}

/**
 * dcbm_claim() - claim channels for a run
 * @run:	the run; @run->nr is 0 if no channel is free
 * @wanted:	the most to claim
 * @engine:	of this engine only; NULL for any
 *
 * Context: any; dcbm_mutex held if @engine is named. Does not wait.
 */
void dcbm_claim(struct dcbm_run *run, unsigned int wanted, const struct dcbm_engine *engine)
{
	const struct ferry_pair *pair = run->batch->pairs;
	unsigned char slots[DCBM_MAX_CHANNELS];
	unsigned int i, nr = dcbm_order(slots, folio_nid(pair->dst), folio_nid(pair->src));

	run->nr = 0;
	for (i = 0; i < nr && run->nr < wanted; i++) {
		/* Whoever names an engine holds dcbm_mutex: what is held stays. */
		if (engine && dcbm_slots[slots[i]]->engine != engine)
			continue;
		if (dcbm_try_claim(slots[i]))
			run->ch[run->nr++] = dcbm_slots[slots[i]];
	}
}

/*
 * A last chance for a retired channel's callbacks to come: drivers that free their descriptors
 * on release do not survive the completion of one (ptdma). Of a channel that was not stuck none
 * will, see complete.c.
 */
static bool dcbm_recover(struct dcbm_channel *ch)
{
	return ch->stuck &&
	       wait_event_timeout(dcbm_wait, !atomic_read(&ch->pending),
				  msecs_to_jiffies(DCBM_LEAVE_MS)) && dcbm_recall(ch);
}

/* The driver leaves whether the device is done or not. */
static void dcbm_evict(struct dcbm_channel *ch)
{
	if (dcbm_unhold(ch) || dcbm_recover(ch)) {
		dcbm_free(ch);
		return;
	}
	dcbm_linger(ch);
	dma_release_channel(ch->chan);
	dcbm_slots[ch->slot] = NULL;
	clear_bit_unlock(ch->slot, dcbm_claimed);
	dcbm_abandon(ch);
}

/**
 * dcbm_evict_from() - give up the channels of a device, whatever it is doing
 * @dev: the device
 *
 * Context: process context, dcbm_mutex held. Waits for batches in flight, and a while for what
 * is in quarantine.
 */
void dcbm_evict_from(const struct device *dev)
{
	unsigned int i;

	lockdep_assert_held(&dcbm_mutex);
	for (i = 0; i < DCBM_MAX_CHANNELS; i++)
		if (dcbm_slots[i] && dcbm_slots[i]->provider == dev)
			dcbm_evict(dcbm_slots[i]);
}

/** dcbm_evict_all() - give up all channels, for good; otherwise as dcbm_evict_from() */
void dcbm_evict_all(void)
{
	unsigned int i;

	lockdep_assert_held(&dcbm_mutex);
	dcbm_enabled = false;
	for (i = 0; i < DCBM_MAX_CHANNELS; i++)
		if (dcbm_slots[i])
			dcbm_evict(dcbm_slots[i]);
}
