// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: When channels are asked back
 *
 * dmaengine has no way to ask a client for a channel that it holds, and drivers do not expect
 * one to use it at all times. So what may come is watched:
 *
 *	a driver leaves		the channels of its device are removed before; when one has come,
 *				they are looked for. Channels of a device on a bus that is not
 *				watched are taken only if its driver can outlive its clients.
 *	the system sleeps	all but those in quarantine are released before anything is
 *				frozen, and taken again once it is awake: an engine that is
 *				suspended is given nothing. Threads that are not frozen may
 *				migrate; the CPU copies for them.
 *	the system shuts down	all are released for good: drivers shut down without being
 *				unbound, and some warn of channels that are held.
 *
 * Nobody is told of Xen's suspension and of a jump by kexec, which are not for machines in use.
 *
 * Life cycle of a device that is leaving: noted before its channels are removed, so that none is
 * taken again; forgotten when its driver is gone.
 *
 * Lock order: device lock or system_transition_mutex -> notifier chain -> dcbm_mutex.
 */

#include <linux/amba/bus.h>
#include <linux/bits.h>
#include <linux/device/bus.h>
#include <linux/dmaengine.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/pci.h>
#include <linux/platform_device.h>
#include <linux/reboot.h>
#include <linux/suspend.h>
#include <linux/workqueue.h>

#include "internal.h"

/* Devices whose drivers are leaving at the same time. */
#define DCBM_MAX_LEAVING	8

static const struct device *dcbm_leaving[DCBM_MAX_LEAVING];
/* And those that found no room there: while there are any, no channel is taken. */
static unsigned int dcbm_more_leaving;
/* Kinds of sleep, each from before the freezing of tasks until after their thawing. */
#define DCBM_SUSPENDS	BIT(0)
#define DCBM_HIBERNATES	BIT(1)
#define DCBM_RESTORES	BIT(2)

/* No count: of a sleep that could not begin, the end may not be told. */
static unsigned int dcbm_sleeps;

/** dcbm_asleep() - is the system about to sleep? Then no channel may be taken. dcbm_mutex held. */
bool dcbm_asleep(void)
{
	lockdep_assert_held(&dcbm_mutex);
	return dcbm_sleeps;
}

static bool dcbm_is_leaving(const struct device *dev)
{
	unsigned int i;

	if (dcbm_more_leaving)
		return true;
	for (i = 0; i < DCBM_MAX_LEAVING; i++)
		if (dcbm_leaving[i] == dev)
			return true;
	return false;
}

/* Without PCI there is not even a declaration of its bus. */
static const struct bus_type *const dcbm_buses[] = {
	&platform_bus_type,
#ifdef CONFIG_PCI
	&pci_bus_type,
#endif
#ifdef CONFIG_ARM_AMBA
	&amba_bustype,
#endif
};

static bool dcbm_watched(const struct device *dev)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(dcbm_buses); i++)
		if (dev->bus == dcbm_buses[i])
			return true;
	return false;
}

/**
 * dcbm_stays() - may channels of a device be held?
 * @device: the device
 *
 * Context: dcbm_mutex held.
 * Return: false if its driver is leaving, or could leave without a word to us.
 */
bool dcbm_stays(const struct dma_device *device)
{
	return !dcbm_is_leaving(device->dev) &&
	       (dcbm_watched(device->dev) || device->device_release);
}

static void dcbm_leave(const struct device *dev)
{
	unsigned int i;

	for (i = 0; i < DCBM_MAX_LEAVING && dcbm_leaving[i]; i++)
		;
	if (i < DCBM_MAX_LEAVING)
		dcbm_leaving[i] = dev;
	else
		dcbm_more_leaving++;
}

static void dcbm_left(const struct device *dev)
{
	unsigned int i;

	for (i = 0; i < DCBM_MAX_LEAVING; i++) {
		if (dcbm_leaving[i] == dev) {
			dcbm_leaving[i] = NULL;
			return;
		}
	}
	if (dcbm_more_leaving)
		dcbm_more_leaving--;
}

static void dcbm_driver_leaves(const struct device *dev)
{
	guard(mutex)(&dcbm_mutex);
	dcbm_leave(dev);
	dcbm_evict_from(dev);
}

static void dcbm_driver_left(const struct device *dev)
{
	guard(mutex)(&dcbm_mutex);
	dcbm_left(dev);
	dcbm_unbound(dev);
}

static void dcbm_refresh_work(struct work_struct *work)
{
	guard(mutex)(&dcbm_mutex);
	dcbm_refresh();
}

static DECLARE_WORK(dcbm_look_for_more, dcbm_refresh_work);

static int dcbm_notify_reboot(struct notifier_block *nb, unsigned long event, void *unused)
{
	guard(mutex)(&dcbm_mutex);
	dcbm_evict_all();
	return NOTIFY_DONE;
}

static struct notifier_block dcbm_reboot = { .notifier_call = dcbm_notify_reboot };

static void dcbm_sleep(unsigned int kind)
{
	guard(mutex)(&dcbm_mutex);
	dcbm_sleeps |= kind;
	dcbm_give_back();
}

static void dcbm_wake(unsigned int kind)
{
	scoped_guard(mutex, &dcbm_mutex)
		dcbm_sleeps &= ~kind;
	/* A work of its own: measuring takes time, and the system's waking would wait for it. */
	queue_work(system_dfl_wq, &dcbm_look_for_more);
}

static int dcbm_notify_pm(struct notifier_block *nb, unsigned long event, void *unused)
{
	switch (event) {
	case PM_SUSPEND_PREPARE:
		dcbm_sleep(DCBM_SUSPENDS);
		break;
	case PM_POST_SUSPEND:
		dcbm_wake(DCBM_SUSPENDS);
		break;
	case PM_HIBERNATION_PREPARE:
		dcbm_sleep(DCBM_HIBERNATES);
		break;
	case PM_POST_HIBERNATION:
		dcbm_wake(DCBM_HIBERNATES);
		break;
	case PM_RESTORE_PREPARE:
		dcbm_sleep(DCBM_RESTORES);
		break;
	case PM_POST_RESTORE:
		dcbm_wake(DCBM_RESTORES);
		break;
	}
	return NOTIFY_DONE;
}

static struct notifier_block dcbm_pm = { .notifier_call = dcbm_notify_pm };

static int dcbm_notify_bus(struct notifier_block *nb, unsigned long event, void *data)
{
	switch (event) {
	case BUS_NOTIFY_UNBIND_DRIVER:
		dcbm_driver_leaves(data);
		break;
	case BUS_NOTIFY_UNBOUND_DRIVER:
		dcbm_driver_left(data);
		break;
	case BUS_NOTIFY_BOUND_DRIVER:
		/* A work of its own: the driver may register with dmaengine later. */
		queue_work(system_dfl_wq, &dcbm_look_for_more);
		break;
	}
	return NOTIFY_DONE;
}

/* One a bus, as each is an entry of its list. */
static struct notifier_block dcbm_watchers[ARRAY_SIZE(dcbm_buses)];

/** dcbm_notify_init() - start to watch */
int dcbm_notify_init(void)
{
	/* Not during a sleep whose beginning was missed; one by /dev/snapshot cannot be seen. */
	unsigned int flags = lock_system_sleep();
	unsigned int i;
	int err = 0;

	for (i = 0; !err && i < ARRAY_SIZE(dcbm_buses); i++) {
		dcbm_watchers[i].notifier_call = dcbm_notify_bus;
		err = bus_register_notifier(dcbm_buses[i], &dcbm_watchers[i]);
	}
	if (!err)
		err = register_reboot_notifier(&dcbm_reboot);
	if (!err)
		err = register_pm_notifier(&dcbm_pm);
	unlock_system_sleep(flags);
	if (err)
		dcbm_notify_exit();
	return err;
}

/** dcbm_notify_exit() - stop watching; no channel is held any more */
void dcbm_notify_exit(void)
{
	unsigned int i;

	/* Of what was not registered they return an error, and that is all. */
	unregister_pm_notifier(&dcbm_pm);
	unregister_reboot_notifier(&dcbm_reboot);
	for (i = 0; i < ARRAY_SIZE(dcbm_buses); i++)
		bus_unregister_notifier(dcbm_buses[i], &dcbm_watchers[i]);
	cancel_work_sync(&dcbm_look_for_more);
}
