// SPDX-License-Identifier: GPL-2.0
/* Pending flushes, read-only PTEs, and the bound of the quarantine. */

#include <linux/file.h>
#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/pagemap.h>
#include <linux/shmem_fs.h>

#include "fixture.h"

static void mm_new_has_no_flush_pending(struct kunit *test)
{
	KUNIT_EXPECT_FALSE(test, migrc_flush_pending(new_mm(test)));
}

static void mm_flush_ends_pending(struct kunit *test)
{
	struct mm_struct *mm = new_mm(test);

	migrc_mm_defer(mm);
	KUNIT_EXPECT_TRUE(test, migrc_flush_pending(mm));
	__migrc_flush(mm, MIGRC_UNMAP);
	KUNIT_EXPECT_FALSE(test, migrc_flush_pending(mm));
}

static void mm_flush_is_not_repeated(struct kunit *test)
{
	struct mm_struct *mm = new_mm(test);
	s64 before;

	migrc_mm_defer(mm);
	__migrc_flush(mm, MIGRC_UNMAP);
	before = migrc_generation();
	__migrc_flush(mm, MIGRC_UNMAP);
	KUNIT_EXPECT_EQ(test, migrc_generation(), before);
}

static void mm_flush_is_of_one_mm(struct kunit *test)
{
	struct mm_struct *one = new_mm(test), *other = new_mm(test);

	migrc_mm_defer(one);
	migrc_mm_defer(other);
	__migrc_flush(one, MIGRC_UNMAP);
	KUNIT_EXPECT_FALSE(test, migrc_flush_pending(one));
	KUNIT_EXPECT_TRUE(test, migrc_flush_pending(other));
}

/* The flushes of fork, and of reclaim's batches. */
static void mm_flush_of_the_kernel_counts(struct kunit *test)
{
	struct mm_struct *mm = new_mm(test);

	migrc_mm_defer(mm);
	__migrc_flush_tlb_mm(mm);
	KUNIT_EXPECT_FALSE(test, migrc_flush_pending(mm));
	migrc_mm_defer(mm);
	KUNIT_EXPECT_TRUE(test, migrc_flush_pending(mm));
}

/* A flush that has begun does not include later deferrals. */
static void mm_flush_that_began_before(struct kunit *test)
{
	struct mm_struct *mm = new_mm(test);
	s64 start;

	migrc_mm_defer(mm);
	__migrc_flush(mm, MIGRC_UNMAP);
	start = migrc_generation();
	migrc_mm_defer(mm);
	migrc_advance(&mm->migrc.flushed, start);
	KUNIT_EXPECT_TRUE(test, migrc_flush_pending(mm));
}

static void mm_drain_flushes_all(struct kunit *test)
{
	struct mm_struct *one = new_mm(test), *other = new_mm(test);

	migrc_mm_defer(one);
	migrc_mm_defer(other);
	__migrc_drain(MIGRC_FAILURE);
	KUNIT_EXPECT_FALSE(test, migrc_flush_pending(one));
	KUNIT_EXPECT_FALSE(test, migrc_flush_pending(other));
}

static void mm_flushed_leaves_the_list(struct kunit *test)
{
	struct mm_struct *mm = new_mm(test);

	migrc_mm_defer(mm);
	KUNIT_EXPECT_FALSE(test, list_empty(&mm->migrc.node));
	__migrc_drain(MIGRC_FAILURE);
	__migrc_drain(MIGRC_FAILURE);
	KUNIT_EXPECT_TRUE(test, list_empty(&mm->migrc.node));
	migrc_mm_defer(mm);
	KUNIT_EXPECT_FALSE(test, list_empty(&mm->migrc.node));
}

static void read_only_without_pending_flush(struct kunit *test)
{
	struct vm_area_struct vma = { .vm_mm = new_mm(test) };

	KUNIT_EXPECT_TRUE(test, migrc_read_only(&vma));
	inc_tlb_flush_pending(vma.vm_mm);
	KUNIT_EXPECT_FALSE(test, migrc_read_only(&vma));
	dec_tlb_flush_pending(vma.vm_mm);
	KUNIT_EXPECT_TRUE(test, migrc_read_only(&vma));
}

/* A scan's pending flush hides a writer only if the VMA may be written. */
static void read_only_while_scanned(struct kunit *test)
{
	struct vm_area_struct read = { .vm_mm = new_mm(test) }, write = read;

	vm_flags_init(&read, VM_READ);
	vm_flags_init(&write, VM_READ | VM_WRITE);
	mmap_read_lock(read.vm_mm);
	migrc_numa_scan_begin(&read);
	inc_tlb_flush_pending(read.vm_mm);
	KUNIT_EXPECT_TRUE(test, migrc_read_only(&read));
	KUNIT_EXPECT_FALSE(test, migrc_read_only(&write));
	dec_tlb_flush_pending(read.vm_mm);
	migrc_numa_scan_end(&read);
	mmap_read_unlock(read.vm_mm);
	inc_tlb_flush_pending(read.vm_mm);
	KUNIT_EXPECT_FALSE(test, migrc_read_only(&read));
	dec_tlb_flush_pending(read.vm_mm);
}

/*
 * A hinting fault may give write permission if the VMA does, so the scan before
 * it does the pending flush.
 */
static void scan_flushes_where_memory_may_be_written(struct kunit *test)
{
	struct vm_area_struct read = { .vm_mm = new_mm(test) }, write = read;
	struct mm_struct *mm = read.vm_mm;

	vm_flags_init(&read, VM_READ);
	vm_flags_init(&write, VM_READ | VM_WRITE);
	migrc_mm_defer(mm);
	__migrc_numa_scan_begin(&read);
	__migrc_flush_unmap(mm);
	KUNIT_EXPECT_TRUE(test, migrc_flush_pending(mm));
	current->migrc_batch = NULL;
	__migrc_numa_scan_begin(&write);
	__migrc_flush_unmap(mm);
	KUNIT_EXPECT_FALSE(test, migrc_flush_pending(mm));
	KUNIT_EXPECT_NULL(test, current->migrc_batch);
}

static void read_only_not_while_forking(struct kunit *test)
{
	struct vm_area_struct vma = { .vm_mm = new_mm(test) };

	migrc_fork_begin(vma.vm_mm);
	KUNIT_EXPECT_FALSE(test, migrc_read_only(&vma));
	migrc_fork_end(vma.vm_mm);
	KUNIT_EXPECT_TRUE(test, migrc_read_only(&vma));
}

static void advance_never_goes_back(struct kunit *test)
{
	atomic64_t clock = ATOMIC64_INIT(5);

	migrc_advance(&clock, 3);
	KUNIT_EXPECT_EQ(test, atomic64_read(&clock), 5);
	migrc_advance(&clock, 7);
	KUNIT_EXPECT_EQ(test, atomic64_read(&clock), 7);
}

static void restore_bound(void *pages)
{
	migrc_set_bound((unsigned long)pages);
}

static void quarantine_bound_holds(struct kunit *test)
{
	unsigned long old = migrc_bound();

	KUNIT_ASSERT_EQ(test,
			kunit_add_action_or_reset(test, restore_bound,
						  (void *)old), 0);
	migrc_set_bound(10);
	KUNIT_EXPECT_EQ(test, migrc_reserve(6), 6);
	KUNIT_EXPECT_EQ(test, migrc_reserve(6), 4);
	KUNIT_EXPECT_EQ(test, migrc_reserve(6), 0);
	migrc_unreserve(4);
	KUNIT_EXPECT_EQ(test, migrc_reserve(1), 1);
	migrc_unreserve(7);
	KUNIT_EXPECT_EQ(test, migrc_reserve(10), 10);
	migrc_unreserve(10);
}

static void quarantine_bound_of_nothing(struct kunit *test)
{
	unsigned long old = migrc_bound();

	KUNIT_ASSERT_EQ(test,
			kunit_add_action_or_reset(test, restore_bound,
						  (void *)old), 0);
	migrc_set_bound(0);
	KUNIT_EXPECT_EQ(test, migrc_reserve(1), 0);
}

static void quarantine_is_reclaimed(struct kunit *test)
{
	put_into_quarantine(test, 3);
	KUNIT_EXPECT_EQ(test, __migrc_reclaim(), 3);
	KUNIT_EXPECT_EQ(test, migrc_quarantined(), 0);
	KUNIT_EXPECT_TRUE(test, migrc_paused());
	KUNIT_EXPECT_EQ(test, __migrc_reclaim(), 0);
}

/* kswapd drains the quarantine, but not less than a batch. */
static void quarantine_balances(struct kunit *test)
{
	put_into_quarantine(test, 3);
	__migrc_balance();
	KUNIT_EXPECT_EQ(test, migrc_quarantined(), 3);
	put_into_quarantine(test, MIGRC_BATCH_PAGES - 3);
	__migrc_balance();
	KUNIT_EXPECT_EQ(test, migrc_quarantined(), 0);
}

/* A batch of one page takes the last room, and drains only without any. */
static void quarantine_room_for_one(struct kunit *test)
{
	unsigned long old = migrc_bound();
	struct migrc_batch one = {}, two = {};

	KUNIT_ASSERT_EQ(test,
			kunit_add_action_or_reset(test, restore_bound,
						  (void *)old), 0);
	migrc_set_bound(4);
	put_into_quarantine(test, 3);
	migrc_more_room(&one, 1);
	KUNIT_EXPECT_EQ(test, one.reserved, 1);
	KUNIT_EXPECT_EQ(test, migrc_quarantined(), 3);
	migrc_more_room(&two, 1);
	KUNIT_EXPECT_EQ(test, two.reserved, 1);
	KUNIT_EXPECT_EQ(test, migrc_quarantined(), 0);
	migrc_unreserve(2);
}

/* More mms than are visited without dropping the lock. */
static void mm_drain_flushes_many(struct kunit *test)
{
	struct mm_struct *mms[150];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(mms); i++) {
		mms[i] = new_mm(test);
		migrc_mm_defer(mms[i]);
	}
	__migrc_drain(MIGRC_FAILURE);
	for (i = 0; i < ARRAY_SIZE(mms); i++)
		KUNIT_EXPECT_FALSE_MSG(test, migrc_flush_pending(mms[i]),
				       "mm %u", i);
	/* The next drain removes them from the list. */
	__migrc_drain(MIGRC_FAILURE);
	for (i = 0; i < ARRAY_SIZE(mms); i++)
		KUNIT_EXPECT_TRUE_MSG(test, list_empty(&mms[i]->migrc.node),
				      "mm %u", i);
}

static struct folio *new_anon_folio(struct kunit *test)
{
	struct folio *folio = folio_alloc(GFP_KERNEL, 0);

	KUNIT_ASSERT_NOT_NULL(test, folio);
	folio->mapping = (void *)FOLIO_MAPPING_ANON;
	return folio;
}

static void free_anon_folio(struct folio *folio)
{
	folio->mapping = NULL;
	atomic_set(&folio->_mapcount, -1);
	folio_put(folio);
}

/*
 * The caller says whether a folio is migrated: a folio that is mapped may be
 * unmapped a moment later.
 */
static void unmapped_is_what_the_caller_says(struct kunit *test)
{
	struct folio *folio = new_anon_folio(test);
	struct migrc_batch batch = {
		.seen = MIGRC_SEEN_DEFERRED, .folio_ptes = 1,
	};

	__migrc_folio_not_migrated(&batch);
	KUNIT_EXPECT_EQ(test, batch.seen, 0);
	KUNIT_EXPECT_EQ(test, batch.folio_ptes, 0);
	atomic_set(&folio->_mapcount, 0);
	batch.seen = MIGRC_SEEN_DEFERRED;
	batch.folio_ptes = 1;
	KUNIT_EXPECT_EQ(test, __migrc_folio_unmapped(&batch, folio),
			MIGRC_FOLIO_DEFERRED);
	KUNIT_EXPECT_EQ(test, batch.nr_ptes, 1);
	free_anon_folio(folio);
}

/*
 * The folios of a run take turns. Each one has a decision of its own, and all
 * of them together do not defer more than there is room for.
 */
static void folios_take_turns(struct kunit *test)
{
	struct migrc_batch batch = { .budget = 2 };
	struct migrc_batch *outer = current->migrc_batch;
	struct vm_area_struct vma = { .vm_mm = new_mm(test) };
	static const bool deferred[] = { true, true, false };
	unsigned long state[ARRAY_SIZE(deferred)] = {};
	struct folio *folio = new_anon_folio(test);
	unsigned int i, turn;
	pte_t pte;

	pte = mk_pte(folio_page(folio, 0), PAGE_READONLY);
	current->migrc_batch = &batch;
	for (turn = 0; turn < 2; turn++) {
		for (i = 0; i < ARRAY_SIZE(deferred); i++) {
			__migrc_folio_resume(state[i]);
			KUNIT_EXPECT_EQ_MSG(test, deferred[i],
					    __migrc_try_defer_pte(folio, &vma,
								  pte),
					    "folio %u, PTE %u", i, turn);
			if (deferred[i])
				migrc_defer_pte(vma.vm_mm, turn * PAGE_SIZE,
						pte);
			state[i] = __migrc_folio_suspend();
		}
	}
	KUNIT_EXPECT_EQ(test, batch.budget, 0);
	for (i = 0; i < ARRAY_SIZE(deferred); i++) {
		__migrc_folio_resume(state[i]);
		KUNIT_EXPECT_EQ(test, deferred[i] ? MIGRC_FOLIO_DEFERRED : 0,
				__migrc_folio_unmapped(&batch, folio));
	}
	KUNIT_EXPECT_EQ(test, batch.nr_ptes, 4);
	current->migrc_batch = outer;
	__migrc_drain(MIGRC_FAILURE);
	migrc_unreserve(batch.reserved);
	free_anon_folio(folio);
}

/* A batch with folios deferred in part flushes once and defers no more. */
static void mixed_is_flushed_once_a_batch(struct kunit *test)
{
	struct migrc_batch batch = { .budget = 9 };
	struct migrc_batch *outer = current->migrc_batch;
	struct vm_area_struct vma = { .vm_mm = new_mm(test) };
	struct folio *folio;
	unsigned int i;
	pte_t pte;

	put_into_quarantine(test, 1);
	folio = new_anon_folio(test);
	pte = mk_pte(folio_page(folio, 0), PAGE_READONLY);
	for (i = 0; i < 2; i++) {
		batch.seen = MIGRC_SEEN_DEFERRED | MIGRC_SEEN_WRITABLE;
		KUNIT_EXPECT_EQ(test, __migrc_folio_unmapped(&batch, folio), 0);
		KUNIT_EXPECT_EQ(test, migrc_quarantined(), 1);
	}
	current->migrc_batch = &batch;
	KUNIT_EXPECT_FALSE(test, __migrc_try_defer_pte(folio, &vma, pte));
	KUNIT_EXPECT_EQ(test, batch.seen, MIGRC_SEEN_REFUSED);
	KUNIT_EXPECT_FALSE(test, __migrc_quarantine_folio(folio));
	batch.seen = 0;
	batch.mixed = false;
	KUNIT_EXPECT_TRUE(test, __migrc_try_defer_pte(folio, &vma, pte));
	current->migrc_batch = outer;
	batch.mixed = true;
	migrc_batch_flush(&batch);
	KUNIT_EXPECT_EQ(test, migrc_quarantined(), 0);
	free_anon_folio(folio);
}

static void put_file(void *file)
{
	fput(file);
}

static void not_used(void *unused)
{
	static_branch_dec(&migrc_used);
}

/* memfd_pin_folios() needs no write access, yet lets a device write. */
static void file_that_is_pinned_is_drained(struct kunit *test)
{
	struct file *file = shmem_kernel_file_setup("migrc", PAGE_SIZE,
						    EMPTY_VMA_FLAGS);
	struct folio *folio, *pinned;
	pgoff_t offset;
	long nr;

	KUNIT_ASSERT_FALSE(test, IS_ERR(file));
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, put_file, file),
			0);
	static_branch_inc(&migrc_used);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, not_used, NULL),
			0);
	put_into_quarantine(test, 1);
	folio = shmem_read_folio(file->f_mapping, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(folio));
	migrc_file_commit(folio);
	folio_put(folio);
	KUNIT_EXPECT_EQ(test, migrc_quarantined(), 1);
	nr = memfd_pin_folios(file, 0, PAGE_SIZE - 1, &pinned, 1, &offset);
	KUNIT_EXPECT_EQ(test, nr, 1);
	KUNIT_EXPECT_EQ(test, migrc_quarantined(), 0);
	if (nr == 1)
		unpin_folio(pinned);
}

/* Writeback zeroes a dirty folio beyond the end of its file. */
static void file_tail_is_left_out(struct kunit *test)
{
	struct file_system_type type = { .fs_flags = FS_REQUIRES_DEV };
	struct super_block *sb = kunit_kzalloc(test, sizeof(*sb), GFP_KERNEL);
	struct inode *inode = kunit_kzalloc(test, sizeof(*inode), GFP_KERNEL);
	struct address_space mapping = { .host = inode };
	struct folio *folio = folio_alloc(GFP_KERNEL, 0);

	KUNIT_ASSERT_TRUE(test, sb && inode && folio);
	sb->s_type = &type;
	inode->i_sb = sb;
	inode->i_mode = S_IFREG;
	inode->i_size = 100;
	folio->mapping = &mapping;
	folio->index = 0;
	KUNIT_EXPECT_TRUE(test, migrc_file_eligible(folio));
	folio_set_dirty(folio);
	KUNIT_EXPECT_FALSE(test, migrc_file_eligible(folio));
	inode->i_size = PAGE_SIZE;
	KUNIT_EXPECT_TRUE(test, migrc_file_eligible(folio));
	folio_clear_dirty(folio);
	folio->mapping = NULL;
	folio_put(folio);
}

static void knobs_are_off_at_first(struct kunit *test)
{
	KUNIT_EXPECT_FALSE(test, migrc_enabled);
	KUNIT_EXPECT_FALSE(test, static_key_enabled(&migrc_used));
}

static struct kunit_case migrc_cases[] = {
	KUNIT_CASE(knobs_are_off_at_first),
	KUNIT_CASE(mm_new_has_no_flush_pending),
	KUNIT_CASE(mm_flush_ends_pending),
	KUNIT_CASE(mm_flush_is_not_repeated),
	KUNIT_CASE(mm_flush_is_of_one_mm),
	KUNIT_CASE(mm_flush_of_the_kernel_counts),
	KUNIT_CASE(mm_flush_that_began_before),
	KUNIT_CASE(mm_drain_flushes_all),
	KUNIT_CASE(mm_flushed_leaves_the_list),
	KUNIT_CASE(read_only_without_pending_flush),
	KUNIT_CASE(read_only_while_scanned),
	KUNIT_CASE(scan_flushes_where_memory_may_be_written),
	KUNIT_CASE(read_only_not_while_forking),
	KUNIT_CASE(advance_never_goes_back),
	KUNIT_CASE(quarantine_bound_holds),
	KUNIT_CASE(quarantine_bound_of_nothing),
	KUNIT_CASE(quarantine_balances),
	KUNIT_CASE(quarantine_is_reclaimed),
	KUNIT_CASE(quarantine_room_for_one),
	KUNIT_CASE(mm_drain_flushes_many),
	KUNIT_CASE(unmapped_is_what_the_caller_says),
	KUNIT_CASE(folios_take_turns),
	KUNIT_CASE(mixed_is_flushed_once_a_batch),
	KUNIT_CASE(file_that_is_pinned_is_drained),
	KUNIT_CASE(file_tail_is_left_out),
	{}
};

static struct kunit_suite migrc_suite = {
	.name = "ferry_migrc",
	.test_cases = migrc_cases,
};

kunit_test_suites(&migrc_suite);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Tests of the deferred flush");
