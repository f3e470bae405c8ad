/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LINUX_MIGRC_FILE_H
#define _LINUX_MIGRC_FILE_H

/* The one hook of mm/migrc/ that linux/fs.h needs, apart so that it includes little. */

#include <linux/jump_label.h>

struct inode;

#ifdef CONFIG_MIGRC

DECLARE_STATIC_KEY_FALSE(migrc_used);

void migrc_file_flush(struct inode *inode);

/**
 * migrc_file_writable() - a file has just become open for writing
 * @inode: its inode, i_writecount raised with a full barrier
 *
 * Returns when nobody can read a page of the file that migration has left behind.
 *
 * Context: process context. May sleep.
 */
static inline void migrc_file_writable(struct inode *inode)
{
	if (static_branch_unlikely(&migrc_used))
		migrc_file_flush(inode);
}

#else

static inline void migrc_file_writable(struct inode *inode)
{
}

#endif /* CONFIG_MIGRC */
#endif /* _LINUX_MIGRC_FILE_H */
