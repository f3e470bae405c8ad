// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: DMA engine whose channels come and go
 *
 * In the role "idxd" a device of ferry_testdma has no channels of its own. Each
 * is a queue, a platform device with the driver testdma_wq, as idxd's channels
 * are work queues on a bus of their own: binding the driver to a queue adds a
 * channel to the device, unbinding removes it. Until then the device stays
 * bound.
 *
 * Like idxd, the driver closes a queue before it removes the channel, drains it
 * afterwards, holds a mutex all the time, and frees the channel at the end.
 * Before that it waits for a descriptor, so that queues in use are unbound at
 * work.
 */

#include <linux/delay.h>
#include <linux/mutex.h>
#include <linux/platform_device.h>
#include <linux/slab.h>

#include "../../../dma/dmaengine.h"
#include "testdma.h"

#define TESTDMA_WQ_WAIT_MS	100

static struct platform_device **testdma_providers;
static unsigned int testdma_queues;
static struct platform_device *testdma_wqs[TESTDMA_MAX * TESTDMA_MAX];
/* Held while a channel is added or removed. */
static DEFINE_MUTEX(testdma_wq_mutex);

/* Queues that were unbound while they had descriptors. */
atomic_t testdma_wq_busy;

/**
 * testdma_init_chan() - initialise a channel that is on no list yet
 * @td:	its device
 * @tc:	the channel
 */
void testdma_init_chan(struct testdma *td, struct testdma_chan *tc)
{
	spin_lock_init(&tc->lock);
	INIT_LIST_HEAD(&tc->submitted);
	INIT_LIST_HEAD(&tc->issued);
	INIT_WORK(&tc->work, td->work);
	init_waitqueue_head(&tc->stop_wait);
	tc->chan.device = &td->dma;
	dma_cookie_init(&tc->chan);
	INIT_LIST_HEAD(&tc->chan.device_node);
}

static int testdma_wq_probe(struct platform_device *pdev)
{
	struct platform_device *provider =
		testdma_providers[pdev->id / testdma_queues];
	struct testdma *td = platform_get_drvdata(provider);
	struct testdma_chan *tc;
	int err;

	if (!td)
		return -ENXIO;
	tc = kzalloc_obj(*tc);
	if (!tc)
		return -ENOMEM;
	testdma_init_chan(td, tc);
	platform_set_drvdata(pdev, tc);
	guard(mutex)(&testdma_wq_mutex);
	err = dma_async_device_channel_register(&td->dma, &tc->chan, NULL);
	if (err)
		kfree(tc);
	return err;
}

static void testdma_wq_remove(struct platform_device *pdev)
{
	struct testdma_chan *tc = platform_get_drvdata(pdev);
	unsigned int i;

	for (i = 0; i < TESTDMA_WQ_WAIT_MS && list_empty(&tc->issued); i++)
		fsleep(USEC_PER_MSEC);
	guard(mutex)(&testdma_wq_mutex);
	scoped_guard(spinlock_irqsave, &tc->lock) {
		tc->closed = true;
		if (!list_empty(&tc->issued))
			atomic_inc(&testdma_wq_busy);
	}
	dma_async_device_channel_unregister(tc->chan.device, &tc->chan);
	flush_work(&tc->work);
	kfree(tc);
}

static struct platform_driver testdma_wq_driver = {
	.driver.name = "testdma_wq",
	.probe = testdma_wq_probe,
	.remove = testdma_wq_remove,
};

/**
 * testdma_wq_init() - make the queues of all devices
 * @providers:	the devices, with their driver bound
 * @nr:		number of devices
 * @queues:	number of queues of each
 *
 * Return: 0 or a negative errno with nothing left behind.
 */
int testdma_wq_init(struct platform_device **providers, unsigned int nr,
		    unsigned int queues)
{
	unsigned int i;
	int err;

	testdma_providers = providers;
	testdma_queues = queues;
	err = platform_driver_register(&testdma_wq_driver);
	if (err)
		return err;
	for (i = 0; i < nr * queues; i++) {
		testdma_wqs[i] = platform_device_register_simple("testdma_wq",
								 i, NULL, 0);
		if (IS_ERR(testdma_wqs[i])) {
			err = PTR_ERR(testdma_wqs[i]);
			testdma_wqs[i] = NULL;
			testdma_wq_exit();
			return err;
		}
	}
	return 0;
}

/** testdma_wq_exit() - remove the queues */
void testdma_wq_exit(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(testdma_wqs); i++)
		platform_device_unregister(testdma_wqs[i]);
	platform_driver_unregister(&testdma_wq_driver);
}
