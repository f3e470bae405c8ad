// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Quirks of DMA engine drivers
 *
 * dmaengine has one call to copy memory, and drivers interpret it differently:
 * some lose an issue_pending that comes while they are busy, others start one
 * descriptor per call; some report errors, some report them as success. Each
 * row of the table records what reading a driver and trying it has shown. A
 * driver without a row gets the settings that suit all: one descriptor in
 * flight, and the copy is verified.
 *
 * complete.c describes what follows from done_means_idle. An error that a
 * driver reports is taken as the end of the descriptor, except
 * DMA_TRANS_ABORTED without aborted_means_idle: some drivers report it of
 * descriptors that their device may continue.
 *
 * The table has no field for drivers that can stop their device, because none
 * was found that certainly does. The comments describe terminate_all() for
 * readers who consider calling it.
 */

#include <linux/device/driver.h>
#include <linux/string.h>

#include "internal.h"

static const struct dcbm_quirks dcbm_quirks_table[] = {
	/* Drivers that are not listed. */
	{
		.depth = 1, .issue_each = true, .late_desc_use = true,
	},
	/*
	 * 32 descriptors a channel. The driver frees one after its callback, so
	 * the last of a group is not free at once. Its tasklet starts what it
	 * finds submitted as one chain, even if that is half a group.
	 *
	 * An error ends the chain. Since a series that this driver stands on,
	 * zynqmp waits until the device has stopped. It reports success for the
	 * descriptors that the device has counted, an error for the next one,
	 * and DMA_TRANS_ABORTED for those behind it. terminate_all() masks the
	 * interrupt and lets the transfer continue.
	 */
	{
		.driver = "xilinx-zynqmp-dma", .depth = 28,
		.aborted_means_idle = true, .reports_errors = true,
	},
	/*
	 * Both report errors, since a series that this driver stands on. The
	 * length of a descriptor has 32 bits; each takes an interrupt.
	 *
	 * ptdma starts one command after the other. An interrupt is asked for
	 * by queue, not by descriptor, so each descriptor must ask for one.
	 * terminate_all() frees the descriptors while the queue runs.
	 *
	 * ae4dma has a ring of 32 descriptors. It completes what its device has
	 * left behind.
	 */
	{
		.driver = "ptdma", .depth = 64, .max_len = SZ_2M,
		.issue_each = true, .reports_errors = true,
	},
	{
		.driver = "ae4dma", .depth = 28, .max_len = SZ_2M,
		.done_means_idle = true, .reports_errors = true,
	},
	/*
	 * Loses an issue_pending while busy; has no synchronize. Calls back the
	 * last of several errors as success.
	 */
	{
		.driver = "sf-pdma", .depth = 1, .issue_each = true,
		.done_means_idle = true,
	},
	/*
	 * If completions come out of order, the driver reports the result of
	 * the one that all others waited for. It collects them by interrupts
	 * only, so the last of a group must not be the only one that asks.
	 */
	{
		.driver = "switchtec_dma", .depth = 64, .issue_each = true,
		.done_means_idle = true,
	},
	/*
	 * A channel is a work queue. Descriptors complete in any order, each
	 * with its own result, and only if it asked for an interrupt. prep()
	 * returns NULL if the queue is full, since a series that this driver
	 * stands on. A queue that is being unbound accepts no descriptor, and
	 * completes those that it has. synchronize() waits until the device
	 * has drained the queue, even for ever. terminate_all() drops the
	 * callbacks while the device goes on.
	 */
	{
		.driver = "idxd", .depth = 16, .issue_each = true,
		.release_waits = true, .reports_errors = true,
	},
	/*
	 * An error halts the device. The driver then reports DMA_TRANS_ABORTED
	 * for the descriptors behind it and resets the channel. If a channel
	 * makes no progress for two periods of a timer, the driver resets it
	 * and then reports DMA_TRANS_ABORTED for all: in this order since a
	 * series that this driver stands on. Has no terminate_all().
	 */
	{
		.driver = "ioatdma", .depth = 64, .aborted_means_idle = true,
		.reports_errors = true,
	},
	/* Reports errors. Has no terminate_all(). */
	{ .driver = "plx_dma", .depth = 64, .reports_errors = true },
};

/**
 * dcbm_quirks_of() - quirks of a channel's driver
 * @chan: the channel
 *
 * Context: any; the channel's device is bound.
 * Return: the driver's row, or the row for unlisted drivers.
 */
const struct dcbm_quirks *dcbm_quirks_of(const struct dma_chan *chan)
{
	const struct device_driver *driver = chan->device->dev->driver;
	unsigned int i;

	for (i = 1; driver && i < ARRAY_SIZE(dcbm_quirks_table); i++)
		if (!strcmp(driver->name, dcbm_quirks_table[i].driver))
			return &dcbm_quirks_table[i];
	return &dcbm_quirks_table[0];
}
