// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Channels and engines in debugfs
 *
 * Documentation/ABI/testing/debugfs-ferry-dcbm describes the files. They are
 * for people and tests, and no stable interface.
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

/** dcbm_debugfs_init() - create the files, if the kernel has debugfs */
void dcbm_debugfs_init(void)
{
	dcbm_dir = debugfs_create_dir("ferry_dcbm", NULL);
	debugfs_create_file("channels", 0444, dcbm_dir, NULL, &channels_fops);
	debugfs_create_file("engines", 0444, dcbm_dir, NULL, &engines_fops);
	debugfs_create_u32("force_offload", 0644, dcbm_dir,
			   &dcbm_tuning.force_offload);
}

/** dcbm_debugfs_exit() - remove them */
void dcbm_debugfs_exit(void)
{
	debugfs_remove(dcbm_dir);
}
