// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Request and release of channels
 *
 * dcbm requests channels when one of its migrators is selected and releases
 * them when another migrator is, or when the devices knob excludes them.
 * Drivers do not expect a client that holds channels all the time. So notifiers
 * tell dcbm:
 *
 *	channel added, removed	dcbm looks for new channels when a device or a
 *				channel was added, and releases those that go,
 *				because their driver is about to be unbound or
 *				removes them.
 *	system sleep		dcbm releases all channels but the hung ones
 *				before anything is frozen, and requests them
 *				again after the wake-up: a suspended engine gets
 *				no descriptors. Threads that are not frozen may
 *				migrate; the CPU copies for them.
 *	shutdown		dcbm releases all but the hung ones for good:
 *				drivers shut down without being unbound, and
 *				some warn of channels in use. The release of a
 *				hung one may wait for ever (idxd), or free
 *				descriptors that the device still works on
 *				(zynqmp, ptdma). So it stays, although zynqmp's
 *				shutdown() unregisters the device.
 *
 * Xen's suspend and kexec jump call no notifier that dcbm could use; they are
 * not meant for machines in operation.
 *
 * Locking: dcbm_mutex, see channels.c.
 */

#include <linux/bits.h>
#include <linux/cleanup.h>
#include <linux/delay.h>
#include <linux/device.h>
#include <linux/dmaengine.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/reboot.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/suspend.h>
#include <linux/workqueue.h>

#include "internal.h"

/* How long the removal of a hung channel waits for its device. */
#define DCBM_REMOVAL_WAIT_MS	1000

/*
 * Kinds of sleep, each from before tasks are frozen until they are thawed: the
 * bits of the events that begin them, of which none is 0. Bits and no count: a
 * sleep that could not begin may have no notification of its end. A shutdown
 * has no end.
 */
#define DCBM_SHUTDOWN		BIT(0)
static_assert((PM_POST_SUSPEND - PM_SUSPEND_PREPARE) == 1 &&
	      (PM_POST_HIBERNATION - PM_HIBERNATION_PREPARE) == 1 &&
	      (PM_POST_RESTORE - PM_RESTORE_PREPARE) == 1);

/*
 * Migrators that use the channels: one while one of ours is selected, two while
 * it replaces the other; dcbm_mutex.
 */
static unsigned int dcbm_users;

/**
 * dcbm_acquire_all() - request all channels, because a migrator was selected
 * @need: fail if there is none
 *
 * Context: process context. Takes dcbm_mutex.
 * Return: 0; if @need, -ENODEV if there is none, -EBUSY if the system is about
 * to sleep.
 */
int dcbm_acquire_all(bool need)
{
	guard(mutex)(&dcbm_mutex);
	if (need && dcbm_suspend_state)
		return -EBUSY;
	if (!dcbm_users)
		dcbm_choices_forget();
	dcbm_request_channels();
	if (need && !dcbm_have_channels())
		return -ENODEV;
	dcbm_users++;
	return 0;
}

/**
 * dcbm_release_all() - release all channels, because no migrator uses them
 *
 * Context: process context. Takes dcbm_mutex, waits for batches in flight.
 */
void dcbm_release_all(void)
{
	guard(mutex)(&dcbm_mutex);
	if (!--dcbm_users)
		dcbm_release_channels(true);
}

/* If they are in use, request the channels that have become usable. */
static void dcbm_refresh(void)
{
	lockdep_assert_held(&dcbm_mutex);
	if (!dcbm_users)
		return;
	dcbm_release_channels(false);
	dcbm_request_channels();
}

/**
 * dcbm_set_devices() - choose the devices whose channels may be used
 * @names: "all", or device names separated by blanks or commas
 *
 * Context: process context. Takes dcbm_mutex.
 * Return: 0; -EINVAL if @names has no name or is too long; -EBUSY if the system
 * is about to sleep; -ENODEV if channels are in use and none of the devices has
 * a free channel: then the previous choice is in force again.
 */
int dcbm_set_devices(const char *names)
{
	char *old __free(kfree) = kmalloc(sizeof(dcbm_devices), GFP_KERNEL);

	if (!old)
		return -ENOMEM;
	if (!names[strspn(names, " ,")] ||
	    strlen(names) >= sizeof(dcbm_devices))
		return -EINVAL;
	guard(mutex)(&dcbm_mutex);
	if (dcbm_suspend_state)
		return -EBUSY;
	strscpy(old, dcbm_devices, sizeof(dcbm_devices));
	strscpy(dcbm_devices, names, sizeof(dcbm_devices));
	strreplace(dcbm_devices, ',', ' ');
	dcbm_refresh();
	if (!dcbm_users || dcbm_have_channels())
		return 0;
	strscpy(dcbm_devices, old, sizeof(dcbm_devices));
	dcbm_refresh();
	return -ENODEV;
}

/*
 * Give a hung channel's callbacks a last chance: a driver that frees its
 * descriptors on release does not survive the completion of one (ptdma). After
 * a false completion none is due.
 */
static bool dcbm_wait_for_recovery(struct dcbm_channel *ch)
{
	unsigned long end = jiffies + msecs_to_jiffies(DCBM_REMOVAL_WAIT_MS);

	while (!ch->lost && !dcbm_all_done(ch) && time_before(jiffies, end))
		fsleep(USEC_PER_MSEC);
	return dcbm_try_recover(ch);
}

/*
 * Give up a hung channel. Its release may wait for the device, even for ever,
 * under dma_list_mutex and the locks of the notifier. Then dcbm keeps the
 * reference for good, and with it the driver's module and dmaengine's entry of
 * the device, which needs the device. The driver frees the channel without
 * regard to references, after it has waited for the device itself.
 */
static void dcbm_give_up(struct dcbm_channel *ch)
{
	dcbm_quirk_delay(ch);
	if (ch->quirks->release_waits)
		get_device(ch->provider);
	else
		dma_release_channel(ch->chan);
	dcbm_channel_detach(ch);
	dcbm_abandon(ch);
}

/*
 * Release the channels of @device, or @chan if that is NULL, and give up hung
 * ones: they go whether the device has finished or not. Waits for batches in
 * flight, and for a limited time for hung channels.
 */
static void dcbm_evict(const struct dma_device *device,
		       const struct dma_chan *chan)
{
	unsigned int slot;

	lockdep_assert_held(&dcbm_mutex);
	/* Only hung ones are left. */
	if (dcbm_suspend_state & DCBM_SHUTDOWN)
		return;
	for (slot = 0; slot < DCBM_MAX_CHANNELS; slot++) {
		struct dcbm_channel *ch = dcbm_slot(slot);

		if (!ch || (device && ch->chan->device != device) ||
		    (chan && ch->chan != chan))
			continue;
		if (dcbm_unpublish(ch) || dcbm_wait_for_recovery(ch))
			dcbm_channel_free(ch);
		else
			dcbm_give_up(ch);
	}
}

static void dcbm_refresh_fn(struct work_struct *work)
{
	guard(mutex)(&dcbm_mutex);
	dcbm_refresh();
}

static DECLARE_WORK(dcbm_refresh_work, dcbm_refresh_fn);

/* dcbm stays selected while the system sleeps, and rejects batches. */
static void dcbm_release_for_suspend(unsigned int kind)
{
	guard(mutex)(&dcbm_mutex);
	dcbm_suspend_state |= kind;
	dcbm_release_channels(true);
}

static int dcbm_notify_reboot(struct notifier_block *nb, unsigned long event,
			      void *unused)
{
	dcbm_release_for_suspend(DCBM_SHUTDOWN);
	/* A hung channel that recovers stays, too: its device goes down. */
	dcbm_hung_exit();
	return NOTIFY_DONE;
}

static struct notifier_block dcbm_reboot_nb = {
	.notifier_call = dcbm_notify_reboot,
};

static int dcbm_notify_pm(struct notifier_block *nb, unsigned long event,
			  void *unused)
{
	switch (event) {
	case PM_SUSPEND_PREPARE:
	case PM_HIBERNATION_PREPARE:
	case PM_RESTORE_PREPARE:
		dcbm_release_for_suspend(BIT(event));
		break;
	case PM_POST_SUSPEND:
	case PM_POST_HIBERNATION:
	case PM_POST_RESTORE:
		scoped_guard(mutex, &dcbm_mutex)
			dcbm_suspend_state &= ~BIT(event - 1);
		/* From a work: channels must not delay the wake-up. */
		queue_work(system_dfl_wq, &dcbm_refresh_work);
		break;
	}
	return NOTIFY_DONE;
}

static struct notifier_block dcbm_pm_nb = { .notifier_call = dcbm_notify_pm };

static int dcbm_notify_dma(struct notifier_block *nb, unsigned long event,
			   void *data)
{
	const struct dma_device *device = data;
	const struct dma_chan *chan = data;

	switch (event) {
	case DMA_NOTIFY_DEVICE_ADDED:
	case DMA_NOTIFY_CHAN_ADDED:
		queue_work(system_dfl_wq, &dcbm_refresh_work);
		break;
	case DMA_NOTIFY_DEVICE_REMOVING:
		scoped_guard(mutex, &dcbm_mutex) {
			dcbm_evict(device, NULL);
			dcbm_hung_unbinding(device->dev);
		}
		break;
	case DMA_NOTIFY_CHAN_REMOVING:
		scoped_guard(mutex, &dcbm_mutex)
			dcbm_evict(NULL, chan);
		break;
	}
	return NOTIFY_DONE;
}

static struct notifier_block dcbm_dma_nb = { .notifier_call = dcbm_notify_dma };

/** dcbm_notify_init() - register the notifiers. Return: 0 or an error */
int dcbm_notify_init(void)
{
	/*
	 * Not during a sleep whose beginning was missed; one by /dev/snapshot
	 * cannot be seen.
	 */
	unsigned int flags = lock_system_sleep();
	int err = dmaengine_register_notifier(&dcbm_dma_nb);

	if (!err)
		err = register_reboot_notifier(&dcbm_reboot_nb);
	if (!err)
		err = register_pm_notifier(&dcbm_pm_nb);
	unlock_system_sleep(flags);
	if (err)
		dcbm_notify_exit();
	return err;
}

/** dcbm_notify_exit() - unregister the notifiers; no channel is held */
void dcbm_notify_exit(void)
{
	/* For a notifier that is not registered they return an error only. */
	unregister_pm_notifier(&dcbm_pm_nb);
	unregister_reboot_notifier(&dcbm_reboot_nb);
	dmaengine_unregister_notifier(&dcbm_dma_nb);
	cancel_work_sync(&dcbm_refresh_work);
}
