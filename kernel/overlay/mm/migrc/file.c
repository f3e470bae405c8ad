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
 *   - Before a task gets write access to a file with deferred folios, all
 *     pending flushes are done. Nothing is freed, so that takes one flush.
 *
 * The two sides meet as in Dekker's algorithm. Migration clears the PTEs,
 * records the generation for the file, then reads i_writecount. The opener
 * increments i_writecount, then reads the record. Each side has a full barrier
 * between its two steps, so at least one of them sees the other. If the opener
 * does not see a generation that is recorded later, migration sees the opener
 * and flushes before it copies; the folio is locked until then, so no writer
 * reaches it.
 *
 * The opener compares the recorded generation with migrc_flushed_gen, which a
 * flush of all mms raises only at its end, to the generation at which it began.
 * If the record is less, the PTEs were cleared before that flush began (see
 * mm.c) and the flush is complete, so the opener need not flush.
 *
 * memfd_pin_folios() flushes after it has pinned. Migration records the
 * generation before the copy replaces the source, so a pinner that finds the
 * copy finds the record; and a pinned source is not migrated.
 *
 * A record belongs to one file, so the opener of a file without a pending flush
 * never flushes. The records are in a hash table without chains. While the
 * flush of the file in a slot is pending, folios of other files that share the
 * slot are not deferred.
 *
 * Which files? Those of file systems with FS_STABLE_CONTENT, by which a file
 * system declares that the content of its regular files changes only under
 * write access. A server, a journal that is aborted, or an ioctl may break that
 * rule in others. Files of the kernel's own mounts (memfd, System V shared
 * memory) are written without write access, and so are a file system's own
 * files (quota).
 *
 * Writeback needs no write access to zero the part of a dirty folio beyond the
 * end of its file. read(2) never returns that part, but a mapping shows it, so
 * such folios are not deferred.
 *
 * Locking: a record's lock protects the record; it is a leaf.
 */

#include <linux/export.h>
#include <linux/fs.h>
#include <linux/hash.h>
#include <linux/pagemap.h>
#include <linux/spinlock.h>

#include "internal.h"

#define MIGRC_FILE_BITS	10

/**
 * struct migrc_file - the newest deferral of a file
 * @lock:	protects the other fields
 * @inode:	the file, read without the lock by openers; never dereferenced
 * @gen:	the generation of the deferral
 */
struct migrc_file {
	spinlock_t lock;	/* the other fields */
	const struct inode *inode;
	s64 gen;
};

static struct migrc_file migrc_files[1 << MIGRC_FILE_BITS] = {
	[0 ... (1 << MIGRC_FILE_BITS) - 1] = {
		.lock = __SPIN_LOCK_UNLOCKED(migrc_files.lock),
	},
};

static struct migrc_file *migrc_file(const struct inode *inode)
{
	return &migrc_files[hash_ptr(inode, MIGRC_FILE_BITS)];
}

/* Record a deferral, unless the slot has that of another file. */
static bool migrc_file_record(const struct inode *inode)
{
	struct migrc_file *file = migrc_file(inode);
	bool ours;

	spin_lock(&file->lock);
	ours = file->inode == inode ||
	       file->gen < atomic64_read(&migrc_flushed_gen);
	if (ours) {
		WRITE_ONCE(file->inode, inode);
		file->gen = migrc_generation();
	}
	spin_unlock(&file->lock);
	return ours;
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
	    IS_NOQUOTA(inode) || !(sb->s_type->fs_flags & FS_STABLE_CONTENT))
		return false;
	/* Writeback zeroes the tail; a clean folio needs a writer first. */
	if (folio_test_dirty(folio) &&
	    folio_next_pos(folio) > i_size_read(inode))
		return false;
	return !migrc_may_be_written(inode) && migrc_file_record(inode);
}

/**
 * migrc_file_commit() - record that a folio of the file is deferred
 * @folio: a folio of the page cache, locked, its PTEs cleared
 *
 * Context: process context.
 * Return: false if the file was opened for writing since it was eligible, or
 * its slot was taken.
 */
bool migrc_file_commit(const struct folio *folio)
{
	const struct inode *inode = folio->mapping->host;

	/* The PTEs are cleared before the generation is read, see mm.c. */
	smp_mb();
	if (!migrc_file_record(inode))
		return false;
	/* The record precedes the read of i_writecount, see DOC. */
	smp_mb();
	return !migrc_may_be_written(inode);
}

/* See migrc_file_writable(). */
void migrc_file_flush(struct inode *inode)
{
	struct migrc_file *file = migrc_file(inode);
	bool pending;

	/* The caller's atomic_inc_unless_negative() is the barrier, see DOC. */
	if (READ_ONCE(file->inode) != inode)
		return;
	spin_lock(&file->lock);
	pending = file->inode == inode &&
		  file->gen >= atomic64_read(&migrc_flushed_gen);
	spin_unlock(&file->lock);
	if (!pending || migrc_should_fail(MIGRC_FILE))
		return;
	migrc_flush_mms();
	migrc_count_flush(MIGRC_FILE);
}
EXPORT_SYMBOL(migrc_file_flush);
