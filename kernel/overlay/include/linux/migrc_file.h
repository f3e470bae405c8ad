/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LINUX_MIGRC_FILE_H
#define _LINUX_MIGRC_FILE_H

/*
 * The file hooks of mm/migrc/. linux/fs.h needs one of them, so this header
 * includes little.
 */

#include <linux/jump_label.h>
#include <asm/barrier.h>

struct inode;

#ifdef CONFIG_MIGRC

DECLARE_STATIC_KEY_FALSE(migrc_used);

void migrc_file_flush(struct inode *inode);

/**
 * migrc_file_writable() - flush a file that was just opened for writing
 * @inode: its inode, i_writecount incremented with a full barrier
 *
 * When this returns, no TLB maps a source page of the file.
 *
 * Context: process context. May sleep.
 */
static inline void migrc_file_writable(struct inode *inode)
{
	if (static_branch_unlikely(&migrc_used))
		migrc_file_flush(inode);
}

/**
 * migrc_file_pinned() - flush a file whose folios were pinned, not by a PTE
 * @inode: its inode
 *
 * The pinner, or a device for it, may write the folios without write access to
 * the file. When this returns, no TLB maps a source page of the file.
 *
 * Context: process context. May sleep.
 */
static inline void migrc_file_pinned(struct inode *inode)
{
	/*
	 * The folios are found before the generation of the file is read, see
	 * mm/migrc/file.c.
	 */
	smp_mb();
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
