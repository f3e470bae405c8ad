// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Channels and engines in debugfs
 *
 * /sys/kernel/debug/ferry_dcbm/channels has a line for each channel held,
 *
 *	NAME DRIVER node=N descriptors=N bytes=N near=N windows=0|1 active|hung
 *
 * where near counts the bytes whose destination is on the channel's own node,
 * and windows tells whether it has IOVA windows (map.c). The file engines has
 * the rates of each engine and of batches with and without channels (rates.c,
 * choice.c), and force_offload overrides them.
 * The files are for people and tests; they are no stable interface.
 *
 * Locking: dcbm_mutex keeps channels and engines while they are printed.
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
	seq_printf(m, "bytes=%llu near=%llu windows=%d %s\n", ch->bytes,
		   ch->near_bytes, ch->transfers->windows,
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

static int engines_show(struct seq_file *m, void *unused)
{
	guard(mutex)(&dcbm_mutex);
	dcbm_show_engines(m);
	dcbm_show_choices(m);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(engines);

static int force_offload_get(void *data, u64 *value)
{
	*value = READ_ONCE(dcbm_tuning.force_offload);
	return 0;
}

static int force_offload_set(void *data, u64 value)
{
	if (value > 1)
		return -EINVAL;
	WRITE_ONCE(dcbm_tuning.force_offload, value);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(force_offload_fops, force_offload_get,
			 force_offload_set, "%llu\n");

/** dcbm_debugfs_init() - create the files, if the kernel has debugfs */
void dcbm_debugfs_init(void)
{
	dcbm_dir = debugfs_create_dir("ferry_dcbm", NULL);
	debugfs_create_file("channels", 0444, dcbm_dir, NULL, &channels_fops);
	debugfs_create_file("engines", 0444, dcbm_dir, NULL, &engines_fops);
	debugfs_create_file_unsafe("force_offload", 0644, dcbm_dir, NULL,
				   &force_offload_fops);
}

/** dcbm_debugfs_exit() - remove them */
void dcbm_debugfs_exit(void)
{
	debugfs_remove(dcbm_dir);
}
