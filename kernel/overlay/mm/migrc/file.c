// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: File folios
 *
 * The content of a file page can change without a change of any PTE: by
 * write(2), truncation or hole punching. A check in each of those paths would
 * be a cost to all of them, so migrc asks one question instead: is the file
 * open for writing? In this kernel each writer of a regular file's content
 * holds write access to its inode: by an open file, by a writable shared
 * mapping (which holds one), or for the duration of truncate(2). The exception
 * is memfd_pin_folios() (iommufd), which pins folios of tmpfs without write
 * access; see below.
 *
 *   - If a file is open for writing, its folios are flushed at once.
 *   - Before a task gets write access to a file that may have deferred folios,
 *     everything is drained.
 *
 * The two sides meet as in Dekker's algorithm. Migration clears the PTEs,
 * records the generation for the file, then reads i_writecount. The opener
 * increments i_writecount, then reads the recorded generation. Each side has a
 * full barrier between its two steps, so at least one of them sees the other.
 * If the opener does not see a generation that is recorded later, migration
 * sees the opener and flushes before it copies; the folio is locked until then,
 * so no writer reaches it.
 *
 * The opener compares the recorded generation with migrc_flushed_gen, which
 * migrc_flush_mms() raises only after its flush to the generation at which it
 * began. If the record is less, the PTEs were cleared before that flush began
 * (see mm.c) and the flush is complete, so the opener need not drain.
 *
 * memfd_pin_folios() drains after it has pinned. Migration records the
 * generation before the copy replaces the source, so a pinner that finds the
 * copy finds the record; and a pinned source is not migrated.
 *
 * Generations are recorded for classes of files, by a hash, not in each
 * address_space: a collision costs a drain.
 *
 * Writeback needs no write access to zero the part of a dirty folio beyond the
 * end of its file. read(2) never returns that part, but a mapping shows it, so
 * such folios are not deferred.
 *
 * Files that can change in other ways are not deferred: files of the kernel's
 * own mounts (memfd, System V shared memory), which are written without write
 * access; a file system's own files (quota); and files of all file systems but
 * tmpfs and those on a block device, because a server may send new content.
 */

#include <linux/export.h>
#include <linux/fs.h>
#include <linux/hash.h>
#include <linux/magic.h>
#include <linux/pagemap.h>
#include <linux/shmem_fs.h>
#include <uapi/linux/gfs2_ondisk.h>

#include "internal.h"

#define MIGRC_FILE_BITS	10

static atomic64_t migrc_file_gens[1 << MIGRC_FILE_BITS];

static atomic64_t *migrc_file_gen(const struct inode *inode)
{
	return &migrc_file_gens[hash_ptr(inode, MIGRC_FILE_BITS)];
}

static bool migrc_may_be_written(const struct inode *inode)
{
	return inode_is_open_for_write(inode) &&
	       !migrc_should_fail(MIGRC_FAIL_FILE_RECHECK);
}

/**
 * migrc_file_eligible() - check whether TLBs may keep pages of this file
 * @folio: a folio of the page cache, locked
 *
 * Context: process context.
 * Return: false if the file can be written now, or in ways that migrc does not
 * detect.
 */
bool migrc_file_eligible(const struct folio *folio)
{
	const struct inode *inode = folio->mapping->host;
	const struct super_block *sb = inode->i_sb;

	if (!S_ISREG(inode->i_mode) || (sb->s_flags & SB_KERNMOUNT) ||
	    IS_NOQUOTA(inode))
		return false;
	/* fuseblk has a server, and gfs2 does not mark its quota file. */
	if (!shmem_mapping(folio->mapping) &&
	    (!(sb->s_type->fs_flags & FS_REQUIRES_DEV) ||
	     sb->s_magic == FUSE_SUPER_MAGIC || sb->s_magic == GFS2_MAGIC))
		return false;
	/* Writeback zeroes the tail; a clean folio needs a writer first. */
	if (folio_test_dirty(folio) &&
	    folio_next_pos(folio) > i_size_read(inode))
		return false;
	return !migrc_may_be_written(inode);
}

/**
 * migrc_file_commit() - record that a folio of the file is deferred
 * @folio: a folio of the page cache, locked, its PTEs cleared
 *
 * Context: process context.
 * Return: false if the file was opened for writing since it was eligible.
 */
bool migrc_file_commit(const struct folio *folio)
{
	const struct inode *inode = folio->mapping->host;

	/* The PTEs are cleared before the generation is read, see mm.c. */
	smp_mb();
	migrc_advance(migrc_file_gen(inode), migrc_generation());
	/* The record precedes the read of i_writecount, see DOC. */
	smp_mb();
	return !migrc_may_be_written(inode);
}

/* See migrc_file_writable(). */
void migrc_file_flush(struct inode *inode)
{
	/* The caller's atomic_inc_unless_negative() is the barrier, see DOC. */
	if (atomic64_read(migrc_file_gen(inode)) <
	    atomic64_read(&migrc_flushed_gen))
		return;
	__migrc_drain(MIGRC_FILE);
}
EXPORT_SYMBOL(migrc_file_flush);
