// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: DMA engine with fault injection
 *
 * Platform devices with DMA channels whose "hardware" is a work that copies by
 * the CPU. Each of these files in /sys/kernel/debug/ferry_testdma/ makes one
 * descriptor in N fail at random, 0 being never:
 *
 *	error		not copied, and reported
 *	partial		half copied, and reported as success
 *	lost		not copied, never completed
 *	late		copied and completed late_ms milliseconds later
 *	late_write	never completed, but copied late_ms milliseconds later,
 *			even if the driver was unbound in the meantime
 *	early_completion
 *			reported as success, but copied late_ms milliseconds
 *			later, even if the driver was unbound in the meantime;
 *			until then its first byte is wrong, because it could
 *			otherwise be right already by chance
 *	prep		prep returns NULL
 *
 * hits_* count how often that happened, and unbound_busy how often a queue of
 * testdma_wq.c was unbound while it had descriptors. suspends counts the
 * suspends of a device, and channels_in_suspend the channels that a client held
 * when a suspend began and when it ended.
 *
 * The driver's name is the module parameter role, so that dcbm applies the
 * quirks of the driver of that name. As "xilinx-zynqmp-dma" it handles an error
 * like that driver: it does not copy the descriptors that were issued behind
 * the failed one, and reports them as DMA_TRANS_ABORTED. As "ioatdma" it stops
 * the device before it unregisters it. As "idxd" it completes out of order,
 * only calls back those that asked for an interrupt, waits in synchronize, and
 * testdma_wq.c adds the channels. With the parameter slave its devices also
 * call themselves controllers for peripherals, which they are not.
 *
 * Life cycle of a descriptor:
 *
 * 1. prep allocates it, without waiting for memory.
 * 2. It is submitted, then issued.
 * 3. The channel's work takes it and frees it after its callback. A lost or
 *    dropped descriptor is freed at once, a delayed copy after the copy.
 *
 * Locking: a channel's spinlock protects its lists and cookies. It is not held
 * while a callback runs.
 */

#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/dmaengine.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/pm.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "../../../dma/dmaengine.h"
#include "testdma.h"

static char *role = "ferry_testdma";
module_param(role, charp, 0444);
MODULE_PARM_DESC(role, "name of the driver whose quirks apply");
static unsigned int devices = 2;
module_param(devices, uint, 0444);
MODULE_PARM_DESC(devices, "devices, near the memory nodes in turn (1 to 16)");
static unsigned int channels = 2;
module_param(channels, uint, 0444);
MODULE_PARM_DESC(channels, "channels of each device (1 to 16)");

static bool slave;
module_param(slave, bool, 0444);
MODULE_PARM_DESC(slave, "the devices are slave DMA controllers, too");

/* Size of a queue in the role "idxd": smaller than its clients would like. */
#define TESTDMA_WQ_SIZE	8

enum testdma_fault {
	TESTDMA_ERROR,
	TESTDMA_PARTIAL,
	TESTDMA_LOST,
	TESTDMA_LATE,
	TESTDMA_LATE_WRITE,
	TESTDMA_EARLY_COMPLETION,
	TESTDMA_PREP,
	TESTDMA_NR_FAULTS,
};

static const char * const testdma_names[] = {
	"error", "partial", "lost", "late", "late_write",
	"early_completion", "prep",
};

static const char * const testdma_hit_names[] = {
	"hits_error", "hits_partial", "hits_lost", "hits_late",
	"hits_late_write", "hits_early_completion", "hits_prep",
};

static u32 testdma_rate[TESTDMA_NR_FAULTS];
static atomic_t testdma_hits[TESTDMA_NR_FAULTS];
static u32 testdma_late_ms = 100;
static atomic_t testdma_suspends;
static atomic_t testdma_channels_in_suspend;

struct testdma_desc {
	struct dma_async_tx_descriptor tx;
	struct delayed_work late_copy;
	struct list_head node;
	dma_addr_t src;
	dma_addr_t dst;
	size_t len;
};

/* Delayed copies outlive devices. */
static struct workqueue_struct *testdma_late_wq;
static atomic_t testdma_nr_late;
static struct platform_device *testdma_pdevs[TESTDMA_MAX];
static struct dentry *testdma_dir;

static bool testdma_is(const char *driver)
{
	return !strcmp(role, driver);
}

static bool testdma_fails(enum testdma_fault fault)
{
	u32 rate = READ_ONCE(testdma_rate[fault]);

	if (!rate || get_random_u32_below(rate))
		return false;
	atomic_inc(&testdma_hits[fault]);
	return true;
}

static dma_cookie_t testdma_submit(struct dma_async_tx_descriptor *tx)
{
	struct testdma_desc *desc = container_of(tx, struct testdma_desc, tx);
	struct testdma_chan *tc = to_testdma_chan(tx->chan);

	guard(spinlock_irqsave)(&tc->lock);
	list_add_tail(&desc->node, &tc->submitted);
	return dma_cookie_assign(tx);
}

/* Like idxd's: it issues the descriptor, or frees it. */
static dma_cookie_t testdma_submit_wq(struct dma_async_tx_descriptor *tx)
{
	struct testdma_desc *desc = container_of(tx, struct testdma_desc, tx);
	struct testdma_chan *tc = to_testdma_chan(tx->chan);
	struct testdma *td = container_of(tx->chan->device, struct testdma,
					  dma);
	dma_cookie_t cookie;

	scoped_guard(spinlock_irqsave, &tc->lock) {
		if (tc->closed) {
			kfree(desc);
			return -ENXIO;
		}
		list_add_tail(&desc->node, &tc->issued);
		cookie = dma_cookie_assign(tx);
	}
	queue_work(td->wq, &tc->work);
	return cookie;
}

static bool testdma_is_full(struct testdma_chan *tc)
{
	guard(spinlock_irqsave)(&tc->lock);
	return list_count_nodes(&tc->issued) >= TESTDMA_WQ_SIZE;
}

static struct dma_async_tx_descriptor *
testdma_prep(struct dma_chan *chan, dma_addr_t dst, dma_addr_t src, size_t len,
	     unsigned long flags)
{
	struct testdma_desc *desc;

	if (testdma_fails(TESTDMA_PREP) ||
	    (testdma_is("idxd") && testdma_is_full(to_testdma_chan(chan))))
		return NULL;
	desc = kzalloc_obj(*desc, GFP_NOWAIT);
	if (!desc)
		return NULL;
	dma_async_tx_descriptor_init(&desc->tx, chan);
	desc->tx.flags = flags;
	desc->tx.tx_submit = testdma_is("idxd") ? testdma_submit_wq :
						  testdma_submit;
	desc->src = src;
	desc->dst = dst;
	desc->len = len;
	return &desc->tx;
}

static void testdma_issue(struct dma_chan *chan)
{
	struct testdma_chan *tc = to_testdma_chan(chan);
	struct testdma *td = container_of(chan->device, struct testdma, dma);

	scoped_guard(spinlock_irqsave, &tc->lock)
		list_splice_tail_init(&tc->submitted, &tc->issued);
	queue_work(td->wq, &tc->work);
}

static void testdma_copy(const struct testdma_desc *desc, size_t len)
{
	/* Without an IOMMU bus addresses are physical addresses. */
	memcpy(phys_to_virt(desc->dst), phys_to_virt(desc->src), len);
}

static void testdma_call_back(struct testdma_chan *tc,
			      struct testdma_desc *desc,
			      enum dmaengine_tx_result tx_result)
{
	struct dmaengine_result result = { .result = tx_result };

	if (testdma_is("idxd") && !(desc->tx.flags & DMA_PREP_INTERRUPT))
		return;
	scoped_guard(spinlock_irqsave, &tc->lock)
		dma_cookie_complete(&desc->tx);
	dmaengine_desc_get_callback_invoke(&desc->tx, &result);
}

static void testdma_complete(struct testdma_chan *tc, struct testdma_desc *desc,
			     enum dmaengine_tx_result tx_result)
{
	testdma_call_back(tc, desc, tx_result);
	kfree(desc);
}

static void testdma_drop(struct testdma_chan *tc)
{
	struct testdma_desc *desc, *next;
	LIST_HEAD(dropped);

	scoped_guard(spinlock_irqsave, &tc->lock) {
		list_splice_init(&tc->issued, &dropped);
		list_splice_init(&tc->submitted, &dropped);
	}
	list_for_each_entry_safe(desc, next, &dropped, node)
		kfree(desc);
}

static void testdma_fail(struct testdma_chan *tc, struct testdma_desc *desc)
{
	LIST_HEAD(aborted);

	if (testdma_is("xilinx-zynqmp-dma")) {
		guard(spinlock_irqsave)(&tc->lock);
		list_splice_init(&tc->issued, &aborted);
	}
	testdma_complete(tc, desc, DMA_TRANS_WRITE_FAILED);
	while (!list_empty(&aborted)) {
		desc = list_first_entry(&aborted, struct testdma_desc, node);
		list_del(&desc->node);
		testdma_complete(tc, desc, DMA_TRANS_ABORTED);
	}
}

static void testdma_late_copy_fn(struct work_struct *work)
{
	struct testdma_desc *desc = container_of(to_delayed_work(work),
						 struct testdma_desc,
						 late_copy);

	testdma_copy(desc, desc->len);
	kfree(desc);
	atomic_dec(&testdma_nr_late);
}

static void testdma_copy_later(struct testdma_desc *desc)
{
	atomic_inc(&testdma_nr_late);
	INIT_DELAYED_WORK(&desc->late_copy, testdma_late_copy_fn);
	queue_delayed_work(testdma_late_wq, &desc->late_copy,
			   msecs_to_jiffies(READ_ONCE(testdma_late_ms)));
}

static void testdma_complete_early(struct testdma_chan *tc,
				   struct testdma_desc *desc)
{
	const u8 *src = phys_to_virt(desc->src);
	u8 *dst = phys_to_virt(desc->dst);

	*dst = ~*src;
	testdma_call_back(tc, desc, DMA_TRANS_NOERROR);
	testdma_copy_later(desc);
}

/* Wait late_ms. Return false if the channel was stopped. */
static bool testdma_delay(struct testdma_chan *tc)
{
	unsigned long timeout = msecs_to_jiffies(READ_ONCE(testdma_late_ms));

	return !wait_event_timeout(tc->stop_wait, READ_ONCE(tc->stop), timeout);
}

static void testdma_execute(struct testdma_chan *tc, struct testdma_desc *desc)
{
	if (testdma_fails(TESTDMA_ERROR)) {
		testdma_fail(tc, desc);
		return;
	}
	if (testdma_fails(TESTDMA_PARTIAL)) {
		testdma_copy(desc, desc->len / 2);
		testdma_complete(tc, desc, DMA_TRANS_NOERROR);
		return;
	}
	if (testdma_fails(TESTDMA_LATE_WRITE)) {
		testdma_copy_later(desc);
		return;
	}
	if (testdma_fails(TESTDMA_EARLY_COMPLETION)) {
		testdma_complete_early(tc, desc);
		return;
	}
	if (testdma_fails(TESTDMA_LOST) ||
	    (testdma_fails(TESTDMA_LATE) && !testdma_delay(tc))) {
		kfree(desc);
		return;
	}
	testdma_copy(desc, desc->len);
	testdma_complete(tc, desc, DMA_TRANS_NOERROR);
}

static struct testdma_desc *testdma_next(struct testdma_chan *tc)
{
	struct testdma_desc *desc;

	guard(spinlock_irqsave)(&tc->lock);
	if (list_empty(&tc->issued))
		return NULL;
	if (testdma_is("idxd") && get_random_u32_below(2))
		list_rotate_left(&tc->issued);
	desc = list_first_entry(&tc->issued, struct testdma_desc, node);
	list_del(&desc->node);
	return desc;
}

static void testdma_work(struct work_struct *work)
{
	struct testdma_chan *tc = container_of(work, struct testdma_chan, work);
	struct testdma_desc *desc;

	while (!READ_ONCE(tc->stop) && (desc = testdma_next(tc)))
		testdma_execute(tc, desc);
}

/* After this returns nothing is written and no callback runs. */
static void testdma_stop(struct testdma_chan *tc)
{
	WRITE_ONCE(tc->stop, true);
	wake_up_all(&tc->stop_wait);
	cancel_work_sync(&tc->work);
	testdma_drop(tc);
	WRITE_ONCE(tc->stop, false);
}

static void testdma_synchronize(struct dma_chan *chan)
{
	if (testdma_is("idxd"))
		flush_work(&to_testdma_chan(chan)->work);
}

static void testdma_free_chan(struct dma_chan *chan)
{
	if (!testdma_is("idxd"))
		testdma_stop(to_testdma_chan(chan));
}

static enum dma_status testdma_status(struct dma_chan *chan,
				      dma_cookie_t cookie,
				      struct dma_tx_state *state)
{
	if (testdma_is("idxd"))
		return DMA_OUT_OF_ORDER;
	return dma_cookie_status(chan, cookie, state);
}

/* Not called if a client keeps a channel for good, like dcbm a hung one. */
static void testdma_release(struct dma_device *dma)
{
	kfree(container_of(dma, struct testdma, dma));
}

static void testdma_describe(struct testdma *td, struct device *dev)
{
	struct dma_device *dma = &td->dma;
	unsigned int i;

	td->work = testdma_work;
	dma_cap_set(DMA_MEMCPY, dma->cap_mask);
	if (slave)
		dma_cap_set(DMA_SLAVE, dma->cap_mask);
	dma->dev = dev;
	dma->device_prep_dma_memcpy = testdma_prep;
	dma->device_issue_pending = testdma_issue;
	dma->device_synchronize = testdma_synchronize;
	dma->device_free_chan_resources = testdma_free_chan;
	dma->device_tx_status = testdma_status;
	INIT_LIST_HEAD(&dma->channels);
	if (testdma_is("idxd")) {
		dma_cap_set(DMA_PRIVATE, dma->cap_mask);
		dma_cap_set(DMA_COMPLETION_NO_ORDER, dma->cap_mask);
		dma->device_release = testdma_release;
		return;
	}
	for (i = 0; i < channels; i++) {
		testdma_init_chan(td, &td->chans[i]);
		list_add_tail(&td->chans[i].chan.device_node, &dma->channels);
	}
}

static int testdma_probe(struct platform_device *pdev)
{
	struct testdma *td __free(kfree) = kzalloc_obj(*td);
	int err;

	if (!td)
		return -ENOMEM;
	td->wq = alloc_workqueue("testdma/%s", WQ_UNBOUND | WQ_MEM_RECLAIM, 0,
				 dev_name(&pdev->dev));
	if (!td->wq)
		return -ENOMEM;
	testdma_describe(td, &pdev->dev);
	err = dma_async_device_register(&td->dma);
	if (err) {
		destroy_workqueue(td->wq);
		return err;
	}
	/*
	 * A channel kept for good must not keep the module, which tests load
	 * again: dmaengine calls nothing of an unregistered device but its
	 * device_release, and that not while a channel is kept.
	 */
	if (testdma_is("idxd"))
		td->dma.owner = NULL;
	platform_set_drvdata(pdev, no_free_ptr(td));
	return 0;
}

static void testdma_stop_all(struct testdma *td)
{
	struct dma_chan *chan;

	list_for_each_entry(chan, &td->dma.channels, device_node)
		testdma_stop(to_testdma_chan(chan));
}

static void testdma_remove(struct platform_device *pdev)
{
	struct testdma *td = platform_get_drvdata(pdev);
	struct workqueue_struct *wq = td->wq;

	if (testdma_is("ioatdma"))
		testdma_stop_all(td);
	dma_async_device_unregister(&td->dma);
	/* Otherwise td may be freed, and testdma_wq.c has the channels. */
	if (!testdma_is("idxd")) {
		testdma_stop_all(td);
		kfree(td);
	}
	destroy_workqueue(wq);
}

static int testdma_count_channels(struct device *dev)
{
	struct testdma *td = dev_get_drvdata(dev);
	struct dma_chan *chan;

	list_for_each_entry(chan, &td->dma.channels, device_node)
		atomic_add(!!chan->client_count, &testdma_channels_in_suspend);
	return 0;
}

static int testdma_suspend(struct device *dev)
{
	atomic_inc(&testdma_suspends);
	return testdma_count_channels(dev);
}

static DEFINE_SIMPLE_DEV_PM_OPS(testdma_pm_ops, testdma_suspend,
				testdma_count_channels);

static struct platform_driver testdma_driver = {
	.driver.pm = pm_sleep_ptr(&testdma_pm_ops),
	.probe = testdma_probe,
	.remove = testdma_remove,
};

static void testdma_unregister_devices(void)
{
	unsigned int i;

	for (i = 0; i < devices; i++)
		platform_device_unregister(testdma_pdevs[i]);
}

static int testdma_register_devices(void)
{
	int nid = first_online_node;
	unsigned int i;

	for (i = 0; i < devices; i++) {
		struct platform_device *pdev = platform_device_alloc(role, i);

		if (!pdev)
			return -ENOMEM;
		set_dev_node(&pdev->dev, nid);
		dma_coerce_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
		if (platform_device_add(pdev)) {
			platform_device_put(pdev);
			return -EIO;
		}
		testdma_pdevs[i] = pdev;
		nid = next_node_in(nid, node_online_map);
	}
	return 0;
}

static void testdma_create_files(void)
{
	unsigned int i;

	testdma_dir = debugfs_create_dir("ferry_testdma", NULL);
	debugfs_create_u32("late_ms", 0644, testdma_dir, &testdma_late_ms);
	debugfs_create_atomic_t("unbound_busy", 0444, testdma_dir,
				&testdma_wq_busy);
	debugfs_create_atomic_t("suspends", 0444, testdma_dir,
				&testdma_suspends);
	debugfs_create_atomic_t("channels_in_suspend", 0444, testdma_dir,
				&testdma_channels_in_suspend);
	for (i = 0; i < TESTDMA_NR_FAULTS; i++) {
		debugfs_create_u32(testdma_names[i], 0644, testdma_dir,
				   &testdma_rate[i]);
		debugfs_create_atomic_t(testdma_hit_names[i], 0444,
					testdma_dir, &testdma_hits[i]);
	}
}

static int __init testdma_init(void)
{
	int err;

	if (!devices || devices > TESTDMA_MAX ||
	    !channels || channels > TESTDMA_MAX)
		return -EINVAL;
	testdma_late_wq = alloc_workqueue("testdma_late", WQ_UNBOUND, 0);
	if (!testdma_late_wq)
		return -ENOMEM;
	testdma_driver.driver.name = role;
	err = platform_driver_register(&testdma_driver);
	if (err) {
		destroy_workqueue(testdma_late_wq);
		return err;
	}
	err = testdma_register_devices();
	if (!err && testdma_is("idxd"))
		err = testdma_wq_init(testdma_pdevs, devices, channels);
	if (err) {
		testdma_unregister_devices();
		platform_driver_unregister(&testdma_driver);
		destroy_workqueue(testdma_late_wq);
		return err;
	}
	testdma_create_files();
	return 0;
}
module_init(testdma_init);

static void __exit testdma_exit(void)
{
	unsigned int i;

	debugfs_remove(testdma_dir);
	if (testdma_is("idxd"))
		testdma_wq_exit();
	testdma_unregister_devices();
	platform_driver_unregister(&testdma_driver);
	/* Wait for the delayed copies before the module is unloaded. */
	for (i = 0; atomic_read(&testdma_nr_late) && i < 100; i++)
		msleep(100);
	destroy_workqueue(testdma_late_wq);
}
module_exit(testdma_exit);

MODULE_DESCRIPTION("A DMA engine that fails on demand, for tests");
MODULE_LICENSE("GPL");
