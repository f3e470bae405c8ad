// SPDX-License-Identifier: GPL-2.0
/*
 * Files for the tests, in a file system of their own: a kind for each callback
 * that may move its folios in runs.
 */

#include <linux/buffer_head.h>
#include <linux/file.h>
#include <linux/migrate.h>
#include <linux/mount.h>
#include <linux/pagemap.h>
#include <linux/pseudo_fs.h>
#include <linux/writeback.h>

#include "fixture.h"

static struct vfsmount *files;

static int end_read(struct folio *folio)
{
	folio_zero_range(folio, 0, folio_size(folio));
	folio_mark_uptodate(folio);
	folio_unlock(folio);
	return 0;
}

static int read_plain(struct file *file, struct folio *folio)
{
	return end_read(folio);
}

static const struct address_space_operations plain_aops = {
	.read_folio = read_plain,
	.dirty_folio = filemap_dirty_folio,
	.migrate_folio = migrate_folio,
};

static int read_private(struct file *file, struct folio *folio)
{
	folio_attach_private(folio, file->f_mapping);
	return end_read(folio);
}

static void invalidate_private(struct folio *folio, size_t offset,
			       size_t length)
{
	folio_detach_private(folio);
}

static const struct address_space_operations private_aops = {
	.read_folio = read_private,
	.invalidate_folio = invalidate_private,
	.dirty_folio = filemap_dirty_folio,
	.migrate_folio = filemap_migrate_folio,
};

static int read_buffers(struct file *file, struct folio *folio)
{
	create_empty_buffers(folio, PAGE_SIZE / 4, BIT(BH_Uptodate));
	return end_read(folio);
}

static const struct address_space_operations buffers_aops = {
	.read_folio = read_buffers,
	.invalidate_folio = block_invalidate_folio,
	.dirty_folio = block_dirty_folio,
	.migrate_folio = buffer_migrate_folio,
};

static const struct address_space_operations buffers_norefs_aops = {
	.read_folio = read_buffers,
	.invalidate_folio = block_invalidate_folio,
	.dirty_folio = block_dirty_folio,
	.migrate_folio = buffer_migrate_folio_norefs,
};

static const struct address_space_operations *const aops[] = {
	[PLAIN] = &plain_aops,
	[PRIVATE] = &private_aops,
	[BUFFERS] = &buffers_aops,
	[BUFFERS_NOREFS] = &buffers_norefs_aops,
};

static const struct file_operations fops = {
	.mmap_prepare = generic_file_mmap_prepare,
};

static int init_fs_context(struct fs_context *fc)
{
	return init_pseudo(fc, 0x46455259) ? 0 : -ENOMEM;
}

static struct file_system_type files_type = {
	.name = "ferry_runs_kunit",
	.init_fs_context = init_fs_context,
	.kill_sb = kill_anon_super,
};

int ferry_test_mount(struct kunit_suite *suite)
{
	files = kern_mount(&files_type);
	return PTR_ERR_OR_ZERO(files);
}

void ferry_test_unmount(struct kunit_suite *suite)
{
	kern_unmount(files);
}

static void put_file(void *file)
{
	fput(file);
}

/* A file of PAGES. */
struct file *ferry_test_file(struct kunit *test, enum file_kind kind)
{
	struct inode *inode = alloc_anon_inode(files->mnt_sb);
	struct file *file;

	KUNIT_ASSERT_FALSE(test, IS_ERR(inode));
	i_size_write(inode, BYTES);
	inode->i_mapping->a_ops = aops[kind];
	file = alloc_file_pseudo(inode, files, "file", O_RDWR, &fops);
	if (IS_ERR(file))
		iput(inode);
	KUNIT_ASSERT_FALSE(test, IS_ERR(file));
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, put_file, file),
			0);
	return file;
}
