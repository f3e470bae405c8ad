/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LINUX_MIGRC_FILE_H
#define _LINUX_MIGRC_FILE_H

/* The hooks of mm/migrc/ that are about files. linux/fs.h needs one, so this includes little. */

#include <linux/jump_label.h>
#include <asm/barrier.h>

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

/**
 * migrc_file_pinned() - folios of a file were pinned, not by way of a PTE
 * @inode: its inode
 *
 * Who pins them may write them, or have a device do so, without write access to the file.
 * Returns as migrc_file_writable() does.
 *
 * Context: process context. May sleep.
 */
static inline void migrc_file_pinned(struct inode *inode)
{
	smp_mb(); /* the folios were found before the file's note is read, see mm/migrc/file.c */
	migrc_file_writable(inode);
}

#else

static inline void migrc_file_writable(struct inode *inode)
{
}

static inline void migrc_file_pinned(struct inode *inode)
{
}

#endif /* CONFIG_MIGRC */
#endif /* _LINUX_MIGRC_FILE_H */
