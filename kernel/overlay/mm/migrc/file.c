// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Files
 *
 * A page of a file can change without any PTE being touched: by write(2), truncation, a hole
 * punched. Checking in each of those paths would burden them all, so migrc asks one question
 * instead: is the file open for writing? Whoever changes a regular file's content in this
 * kernel holds write access to its inode: by an open file, a writable shared mapping (which
 * holds one), or for the time of a truncate(2). But for who pins folios of tmpfs by
 * memfd_pin_folios() (iommufd), which asks for no such thing: see below.
 *
 *   - A folio of a file that is open for writing is flushed at once.
 *   - Before somebody gets write access to a file that may have deferred folios, everything
 *     is drained.
 *
 * The two meet as Dekker's algorithm does. Migration clears the PTEs, notes the clock for
 * the file, then reads i_writecount; the opener raises i_writecount, then reads the note.
 * With a full barrier between each pair, one of them sees the other. Should the opener not
 * see a note that comes later, migration sees the opener and flushes before it copies; the
 * folio is locked until then, and no writer gets at it.
 *
 * Who pins folios in the page cache drains after that. The note comes before the copy takes
 * the source's place, so who finds the copy finds the note; and a source that is pinned is not
 * moved.
 *
 * Notes are kept for classes of files, by a hash, not in each address_space: a clash costs a
 * drain.
 *
 * Writeback needs no write access to zero what a dirty folio has beyond the end of its file.
 * Nobody reads a file's content there, but who maps it sees it: such folios are left out.
 *
 * Left out are files that can change by other means: those of the kernel's own mounts
 * (memfd, System V shared memory: written without write access), a file system's own files
 * (quota), and all file systems but tmpfs and those on a block device, because a server may
 * send new content.
 *
 * Lock order: none are taken.
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

static atomic64_t migrc_file_notes[1 << MIGRC_FILE_BITS];

static atomic64_t *migrc_file_note(const struct inode *inode)
{
	return &migrc_file_notes[hash_ptr(inode, MIGRC_FILE_BITS)];
}

static bool migrc_fs_eligible(const struct super_block *sb)
{
	if (!(sb->s_type->fs_flags & FS_REQUIRES_DEV))
		return false;
	/* fuseblk has a server, and gfs2's quota file is not marked as such. */
	return sb->s_magic != FUSE_SUPER_MAGIC && sb->s_magic != GFS2_MAGIC;
}

static bool migrc_may_be_written(const struct inode *inode)
{
	return inode_is_open_for_write(inode) && !migrc_should_fail(MIGRC_FAIL_FILE_RECHECK);
}

/* Will writeback zero the end of it? What is clean gets dirty by write access only. */
static bool migrc_tail_to_zero(const struct folio *folio, const struct inode *inode)
{
	return folio_test_dirty(folio) && folio_next_pos(folio) > i_size_read(inode);
}

/**
 * migrc_file_eligible() - may pages of this file be left in TLBs?
 * @folio: a folio of the page cache, locked
 *
 * Context: process context.
 * Return: false if the file can be written now, or by means that we do not know of.
 */
bool migrc_file_eligible(const struct folio *folio)
{
	const struct inode *inode = folio->mapping->host;

	if (!S_ISREG(inode->i_mode) || (inode->i_sb->s_flags & SB_KERNMOUNT) ||
	    IS_NOQUOTA(inode))
		return false;
	if (!shmem_mapping(folio->mapping) && !migrc_fs_eligible(inode->i_sb))
		return false;
	return !migrc_tail_to_zero(folio, inode) && !migrc_may_be_written(inode);
}

/**
 * migrc_file_commit() - note that a folio of the file has been deferred
 * @folio: a folio of the page cache, locked, its PTEs cleared
 *
 * Context: process context.
 * Return: false if somebody has opened the file for writing since it was eligible.
 */
bool migrc_file_commit(const struct folio *folio)
{
	const struct inode *inode = folio->mapping->host;

	smp_mb(); /* the PTEs were cleared before the clock is read, see mm.c */
	migrc_advance(migrc_file_note(inode), migrc_generation());
	smp_mb(); /* the note is there before i_writecount is read, see DOC */
	return !migrc_may_be_written(inode);
}

/* See migrc_file_writable(). */
void migrc_file_flush(struct inode *inode)
{
	/* The caller's atomic_inc_unless_negative() is the barrier, see DOC. */
	if (atomic64_read(migrc_file_note(inode)) <
	    atomic64_read(&migrc_flushed_gen))
		return;
	__migrc_drain(MIGRC_FILE);
}
EXPORT_SYMBOL(migrc_file_flush);
