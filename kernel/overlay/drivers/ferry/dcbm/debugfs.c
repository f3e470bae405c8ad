// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Channels and costs in debugfs
 *
 * /sys/kernel/debug/ferry_dcbm/channels has a line for each channel held,
 *
 *	NAME DRIVER node=N descriptors=N bytes=N near=N active|hung
 *
 * where near counts the bytes whose destination is on the channel's own node;
 * costs has the results of the calibration, and force_offload overrides them.
 * The files are for people and tests; they are no stable interface.
 *
 * Locking: dcbm_mutex keeps the channels and the costs while they are printed.
 */

#include <linux/debugfs.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>

#include "internal.h"

static struct dentry *dcbm_dir;

static void dcbm_show_channel(struct seq_file *m, const struct dcbm_channel *ch)
{
	seq_printf(m, "%s %s node=%d descriptors=%llu ",
		   dma_chan_name(ch->chan), dev_driver_string(ch->provider),
		   ch->nid, ch->nr_descs);
	seq_printf(m, "bytes=%llu near=%llu %s\n", ch->bytes, ch->near_bytes,
		   ch->hung ? "hung" : "active");
}

static int channels_show(struct seq_file *m, void *unused)
{
	unsigned int slot;

	guard(mutex)(&dcbm_mutex);
	for (slot = 0; slot < DCBM_MAX_CHANNELS; slot++)
		if (dcbm_slot(slot))
			dcbm_show_channel(m, dcbm_slot(slot));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(channels);

static int costs_show(struct seq_file *m, void *unused)
{
	guard(mutex)(&dcbm_mutex);
	dcbm_show_costs(m);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(costs);

static int force_offload_get(void *data, u64 *value)
{
	*value = READ_ONCE(dcbm_tuning.force_offload);
	return 0;
}

/* The costs may be stale after a time of forced offload: measure again. */
static int force_offload_set(void *data, u64 value)
{
	if (value > 1)
		return -EINVAL;
	WRITE_ONCE(dcbm_tuning.force_offload, value);
	dcbm_recalibrate();
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(force_offload_fops, force_offload_get,
			 force_offload_set, "%llu\n");

/** dcbm_debugfs_init() - create the files, if the kernel has debugfs */
void dcbm_debugfs_init(void)
{
	dcbm_dir = debugfs_create_dir("ferry_dcbm", NULL);
	debugfs_create_file("channels", 0444, dcbm_dir, NULL, &channels_fops);
	debugfs_create_file("costs", 0444, dcbm_dir, NULL, &costs_fops);
	debugfs_create_file_unsafe("force_offload", 0644, dcbm_dir, NULL,
				   &force_offload_fops);
}

/** dcbm_debugfs_exit() - remove them */
void dcbm_debugfs_exit(void)
{
	debugfs_remove(dcbm_dir);
}
