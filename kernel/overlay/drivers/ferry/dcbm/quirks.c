// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: What is known of DMA drivers
 *
 * dmaengine has one call to copy memory and many readings of it: some drivers lose an
 * issue_pending that comes while they are busy, others start one descriptor per call; some
 * report errors, some report them as success. One row a driver says what was found by
 * reading it and by trying. A driver without a row gets what suits all: one descriptor in
 * flight, the content compared.
 *
 * A completion that the comparison refutes may be the word for an error, or it came too early
 * and the device still writes. Which, is known of a driver that completes a descriptor only
 * when its device has ended, well or not; of all others the worse is assumed, complete.c. An error
 * that a driver reports is believed to be the end of the descriptor.
 *
 * There is no row for who can stop its device: none was found that does so for certain. What
 * terminate_all() does is written down all the same, for who thinks of calling it.
 *
 * Lock order: none are taken.
 */

#include <linux/device/driver.h>
#include <linux/string.h>

#include "internal.h"

static const struct dcbm_engine dcbm_engines[] = {
	/* For those not listed. */
	{ .depth = 1, .issue_each = true, .lingers = true, .proof = DCBM_PROOF_COMPARE },
	/*
	 * 32 descriptors a channel, one interrupt for a chain. An error resets the channel:
	 * the head of the chain completes as if it were well, all others are dropped without
	 * a callback, a sentinel among them. The tasklet that calls back starts what it then
	 * finds submitted, be it half a group: synchronize(), which waits for it, comes before
	 * each. terminate_all() masks the interrupt and lets the transfer run on.
	 */
	{ .driver = "xilinx-zynqmp-dma", .depth = 28, .proof = DCBM_PROOF_SENTINEL },
	/*
	 * The error of a descriptor never reaches its callback, and may not end it either: the
	 * driver sets the queue running after each tail that it writes, and where the error was
	 * quicker, the device may run the descriptor once more. terminate_all() frees the
	 * descriptors while the queue runs. One command at a time.
	 */
	{ .driver = "ptdma", .depth = 1, .issue_each = true, .proof = DCBM_PROOF_COMPARE },
	/*
	 * Shares ptdma's code, but its queues go on after an error. issue_pending() spins until
	 * the descriptor before has been unlinked, which a work does after the callback, without
	 * the channel's lock: with one in flight, the mutex that prep takes keeps the two apart.
	 */
	{
		.driver = "ae4dma", .depth = 1, .issue_each = true, .lingers = true, .ends = true,
		.proof = DCBM_PROOF_COMPARE,
	},
	/*
	 * An issue_pending while busy is lost; no synchronize. The last of several errors is
	 * called back as success.
	 */
	{
		.driver = "sf-pdma", .depth = 1, .issue_each = true, .ends = true,
		.proof = DCBM_PROOF_COMPARE,
	},
	/* Completions out of order get the result of the one that all had waited for. */
	{ .driver = "switchtec_dma", .depth = 64, .ends = true, .proof = DCBM_PROOF_COMPARE },
	/* Both report errors. Neither has a terminate_all(). */
	{ .driver = "ioatdma", .depth = 64, .proof = DCBM_PROOF_RESULT },
	{ .driver = "plx_dma", .depth = 64, .proof = DCBM_PROOF_RESULT },
};

static_assert(ARRAY_SIZE(dcbm_engines) == DCBM_NR_ENGINES);

/**
 * dcbm_engine() - what is known of a channel's driver
 * @chan: the channel
 *
 * Context: any; the channel's device is bound.
 * Return: its row, that for unknown drivers if it has none.
 */
const struct dcbm_engine *dcbm_engine(const struct dma_chan *chan)
{
	const struct device_driver *driver = chan->device->dev->driver;
	unsigned int i;

	for (i = 1; driver && i < DCBM_NR_ENGINES; i++)
		if (!strcmp(driver->name, dcbm_engines[i].driver))
			return &dcbm_engines[i];
	return &dcbm_engines[0];
}

/** dcbm_engine_nth() - the row with this number, 0 to DCBM_NR_ENGINES - 1 */
const struct dcbm_engine *dcbm_engine_nth(unsigned int nr)
{
	return &dcbm_engines[nr];
}

/** dcbm_engine_number() - the number of a row */
unsigned int dcbm_engine_number(const struct dcbm_engine *engine)
{
	return engine - dcbm_engines;
}
