// SPDX-License-Identifier: GPL-2.0
/*
 * What a client of xilinx-zynqmp-dma learns of an error of its engine. The module loads if that is right,
 * otherwise the log tells what is wrong.
 *
 * No address makes an emulated engine report an error: it ignores what the bus answers. It does refuse a
 * descriptor that is not aligned. So the module submits a chain, and before it is issued changes the link to
 * one descriptor in the driver's memory. The engine copies those before it and stops.
 *
 * Then each descriptor must have had one callback, with its result, and the engine must not write any
 * destination of the chain again when the next copy starts.
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/device.h>
#include <linux/dma-mapping.h>
#include <linux/dmaengine.h>
#include <linux/err.h>
#include <linux/io.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/string.h>

/* Of zynqmp_dma.c */
#define SRC_START	0x158
struct hw_desc {
	u64 addr;
	u32 size;
	u32 ctrl;
	u64 next;
	u64 reserved;
};
/* Pairs of a descriptor for the source and one for the destination, in an allocation of their own */
#define HW_DESCS	64

#define COPIES		8
/* The first that the engine cannot fetch */
#define FAILS		3
#define POISON		0xa5
/* Before and after the chain, to see that the channel works */
#define PROBE		COPIES
#define WAIT_MS		5000

struct copy {
	u8 *src;
	u8 *dst;
	dma_addr_t src_dma;
	dma_addr_t dst_dma;
	atomic_t callbacks;
	enum dmaengine_tx_result result;
};

static struct copy copies[COPIES + 1];

static void zynqmp_errors_called(void *param, const struct dmaengine_result *result)
{
	struct copy *copy = param;

	copy->result = result->result;
	atomic_inc(&copy->callbacks);
}

static bool zynqmp_errors_submit(struct dma_chan *chan, struct copy *copy)
{
	struct dma_async_tx_descriptor *tx;

	memset(copy->src, copy - copies + 1, PAGE_SIZE);
	memset(copy->dst, POISON, PAGE_SIZE);
	atomic_set(&copy->callbacks, 0);
	tx = dmaengine_prep_dma_memcpy(chan, copy->dst_dma, copy->src_dma, PAGE_SIZE,
				       DMA_CTRL_ACK | DMA_PREP_INTERRUPT);
	if (!tx)
		return false;
	tx->callback_result = zynqmp_errors_called;
	tx->callback_param = copy;
	return !dma_submit_error(dmaengine_submit(tx));
}

/* Wait for one callback of each copy, and then for a second one of any. */
static bool zynqmp_errors_wait(const struct copy *first, unsigned int number)
{
	unsigned int ms, called = 0;
	bool right = true;

	for (ms = 0; ms < WAIT_MS && called < number; ms += 10) {
		msleep(10);
		while (called < number && atomic_read(&first[called].callbacks))
			called++;
	}
	msleep(100);
	for (called = 0; called < number; called++) {
		int callbacks = atomic_read(&first[called].callbacks);

		if (callbacks != 1)
			pr_err("copy %td had %d callbacks\n", first + called - copies, callbacks);
		right &= callbacks == 1;
	}
	return right;
}

static bool zynqmp_errors_filled(const u8 *page, u8 value)
{
	return page[0] == value && !memcmp(page, page + 1, PAGE_SIZE - 1);
}

/* The engine copied these, and the client was told so; it did not copy the others. */
static bool zynqmp_errors_right(const struct copy *copy, enum dmaengine_tx_result result)
{
	u8 value = result == DMA_TRANS_NOERROR ? copy->src[0] : POISON;

	if (copy->result == result && zynqmp_errors_filled(copy->dst, value))
		return true;
	pr_err("copy %td: result %d instead of %d, first byte %#x instead of %#x\n", copy - copies, copy->result,
	       result, copy->dst[0], value);
	return false;
}

static bool zynqmp_errors_probe(struct dma_chan *chan)
{
	struct copy *probe = &copies[PROBE];

	if (!zynqmp_errors_submit(chan, probe))
		return false;
	dma_async_issue_pending(chan);
	return zynqmp_errors_wait(probe, 1) && zynqmp_errors_right(probe, DMA_TRANS_NOERROR);
}

/* Break the link to a copy that was submitted. The engine's register has the address of an earlier descriptor. */
static bool zynqmp_errors_break(void __iomem *regs, const struct copy *copy)
{
	u64 start = readl(regs + SRC_START) | (u64)readl(regs + SRC_START + 4) << 32;
	struct hw_desc *pool = phys_to_virt(start & PAGE_MASK);
	unsigned int i;

	for (i = 0; i < HW_DESCS; i += 2) {
		if (pool[i].addr == copy[-1].src_dma) {
			pool[i].next |= 8;
			return true;
		}
	}
	pr_err("no descriptor in the driver's memory is that of the copy\n");
	return false;
}

static bool zynqmp_errors_chain(struct dma_chan *chan, void __iomem *regs)
{
	bool right;
	int i;

	for (i = 0; i < COPIES; i++)
		if (!zynqmp_errors_submit(chan, &copies[i]))
			return false;
	if (!zynqmp_errors_break(regs, &copies[FAILS]))
		return false;
	dma_async_issue_pending(chan);
	right = zynqmp_errors_wait(copies, COPIES);
	for (i = 0; right && i < COPIES; i++)
		right = zynqmp_errors_right(&copies[i], i < FAILS ? DMA_TRANS_NOERROR :
					    i == FAILS ? DMA_TRANS_READ_FAILED : DMA_TRANS_ABORTED);
	return right;
}

/* The client may reuse the destinations of a chain: the next copy must not start it again. */
static bool zynqmp_errors_over(struct dma_chan *chan)
{
	int i;

	for (i = 0; i < COPIES; i++)
		memset(copies[i].dst, POISON, PAGE_SIZE);
	if (!zynqmp_errors_probe(chan))
		return false;
	for (i = 0; i < COPIES; i++) {
		if (!zynqmp_errors_filled(copies[i].dst, POISON)) {
			pr_err("the engine wrote the destination of copy %d after its end\n", i);
			return false;
		}
	}
	return true;
}

static bool zynqmp_errors_filter(struct dma_chan *chan, void *unused)
{
	return !strcmp(chan->device->dev->driver->name, "xilinx-zynqmp-dma");
}

/* If anything is wrong the memory is leaked, because the engine may still write it. */
static int zynqmp_errors_run(struct dma_chan *chan, void __iomem *regs)
{
	size_t bytes = ARRAY_SIZE(copies) * 2 * PAGE_SIZE;
	struct device *dev = chan->device->dev;
	dma_addr_t dma;
	u8 *pages;
	int i;

	pages = dma_alloc_coherent(dev, bytes, &dma, GFP_KERNEL);
	if (!pages)
		return -ENOMEM;
	for (i = 0; i < ARRAY_SIZE(copies); i++) {
		copies[i].src = pages + 2 * i * PAGE_SIZE;
		copies[i].dst = copies[i].src + PAGE_SIZE;
		copies[i].src_dma = dma + 2 * i * PAGE_SIZE;
		copies[i].dst_dma = copies[i].src_dma + PAGE_SIZE;
	}
	if (!zynqmp_errors_probe(chan) || !zynqmp_errors_chain(chan, regs) || !zynqmp_errors_over(chan))
		return -EIO;
	dma_free_coherent(dev, bytes, pages, dma);
	return 0;
}

static int __init zynqmp_errors_start(void)
{
	struct dma_chan *chan;
	void __iomem *regs;
	dma_cap_mask_t mask;
	struct resource *res;
	int error = -ENODEV;

	dma_cap_zero(mask);
	dma_cap_set(DMA_MEMCPY, mask);
	chan = dma_request_channel(mask, zynqmp_errors_filter, NULL);
	if (!chan)
		return -ENODEV;
	res = platform_get_resource(to_platform_device(chan->device->dev), IORESOURCE_MEM, 0);
	regs = ioremap(res->start, resource_size(res));
	if (regs) {
		error = zynqmp_errors_run(chan, regs);
		iounmap(regs);
	}
	dma_release_channel(chan);
	return error;
}

static void __exit zynqmp_errors_stop(void)
{
}

module_init(zynqmp_errors_start);
module_exit(zynqmp_errors_stop);
MODULE_DESCRIPTION("Tests what xilinx-zynqmp-dma reports after an error");
MODULE_LICENSE("GPL");
