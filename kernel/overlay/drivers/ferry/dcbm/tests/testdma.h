/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _FERRY_DCBM_TESTDMA_H
#define _FERRY_DCBM_TESTDMA_H

#include <linux/dmaengine.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

/* Devices, and channels of each. */
#define TESTDMA_MAX	16

/**
 * struct testdma_chan - a channel
 * @chan:	the channel of dmaengine
 * @lock:	protects both lists, @closed and the cookies of @chan
 * @submitted:	descriptors that are not issued yet
 * @issued:	descriptors for @work
 * @work:	copies them
 * @stop_wait:	woken when @stop is set
 * @stop:	@work must end
 * @closed:	a queue of testdma_wq.c accepts no more descriptors
 */
struct testdma_chan {
	struct dma_chan chan;
	/* See above. */
	spinlock_t lock;
	struct list_head submitted;
	struct list_head issued;
	struct work_struct work;
	wait_queue_head_t stop_wait;
	bool stop;
	bool closed;
};

/**
 * struct testdma - a device
 * @dma:	the device of dmaengine
 * @wq:		runs the works of its channels
 * @work:	function of these works
 * @chans:	its channels, unless testdma_wq.c adds them
 */
struct testdma {
	struct dma_device dma;
	struct workqueue_struct *wq;
	work_func_t work;
	struct testdma_chan chans[TESTDMA_MAX];
};

static inline struct testdma_chan *to_testdma_chan(struct dma_chan *chan)
{
	return container_of(chan, struct testdma_chan, chan);
}

/* testdma_wq.c */
void testdma_init_chan(struct testdma *td, struct testdma_chan *tc);
int testdma_wq_init(struct platform_device **providers, unsigned int nr,
		    unsigned int queues);
void testdma_wq_exit(void);
extern atomic_t testdma_wq_busy;

#endif /* _FERRY_DCBM_TESTDMA_H */
