// SPDX-License-Identifier: GPL-2.0
/* Pending flushes, what may be deferred, and the bound of the quarantine. */

#include <kunit/static_stub.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/file.h>
#include <linux/kthread.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/mman.h>
#include <linux/page-isolation.h>
#include <linux/pagemap.h>
#include <linux/shmem_fs.h>
#include <linux/uaccess.h>

#include <asm/tlb.h>

#include "../../internal.h"
#include "fixture.h"

static void mm_new_has_no_flush_pending(struct kunit *test)
{
	KUNIT_EXPECT_FALSE(test, migrc_flush_pending(new_mm(test)));
}

static void mm_flush_ends_pending(struct kunit *test)
{
	struct mm_struct *mm = new_mm(test);
	pte_t *ptep = new_table(test);

	migrc_mm_defer(mm, ptep);
	KUNIT_EXPECT_TRUE(test, migrc_flush_pending(mm));
	KUNIT_EXPECT_TRUE(test, migrc_table_pending(mm, ptep));
	__migrc_flush(mm, ptep, MIGRC_PROTECT);
	KUNIT_EXPECT_FALSE(test, migrc_flush_pending(mm));
	KUNIT_EXPECT_FALSE(test, migrc_table_pending(mm, ptep));
}

static void mm_flush_is_not_repeated(struct kunit *test)
{
	struct mm_struct *mm = new_mm(test);
	pte_t *ptep = new_table(test);
	s64 before;

	migrc_mm_defer(mm, ptep);
	__migrc_flush(mm, ptep, MIGRC_PROTECT);
	before = migrc_generation();
	__migrc_flush(mm, ptep, MIGRC_PROTECT);
	KUNIT_EXPECT_EQ(test, migrc_generation(), before);
}

/* A change in a page table costs nothing for deferrals in others. */
static void mm_other_table_pays_nothing(struct kunit *test)
{
	struct mm_struct *mm = new_mm(test);
	pte_t *one = new_table(test), *other = new_table(test);

	migrc_mm_defer(mm, one);
	KUNIT_EXPECT_FALSE(test, migrc_table_pending(mm, other));
	__migrc_flush(mm, other, MIGRC_PROTECT);
	KUNIT_EXPECT_TRUE(test, migrc_table_pending(mm, one));
	__migrc_flush(mm, one, MIGRC_PROTECT);
	KUNIT_EXPECT_FALSE(test, migrc_flush_pending(mm));
}

/* A batch that many mms share costs one flush, not one for each of them. */
static void mm_flush_serves_others(struct kunit *test)
{
	struct mm_struct *mms[16];
	pte_t *ptep = new_table(test);
	unsigned int i;
	s64 before;

	for (i = 0; i < ARRAY_SIZE(mms); i++) {
		mms[i] = new_mm(test);
		migrc_mm_defer(mms[i], ptep);
	}
	before = migrc_generation();
	for (i = 0; i < ARRAY_SIZE(mms); i++)
		__migrc_flush(mms[i], ptep, MIGRC_PROTECT);
	KUNIT_EXPECT_EQ(test, migrc_generation(), before + 1);
	for (i = 0; i < ARRAY_SIZE(mms); i++)
		KUNIT_EXPECT_FALSE_MSG(test, migrc_flush_pending(mms[i]),
				       "mm %u", i);
}

/* The caller's own mm is flushed however long the list is. */
static void mm_flush_serves_the_payer(struct kunit *test)
{
	struct mm_struct *mms[150];
	pte_t *ptep = new_table(test);
	unsigned int i, left = 0;

	for (i = 0; i < ARRAY_SIZE(mms); i++) {
		mms[i] = new_mm(test);
		migrc_mm_defer(mms[i], ptep);
	}
	__migrc_flush(mms[ARRAY_SIZE(mms) - 1], ptep, MIGRC_PROTECT);
	KUNIT_EXPECT_FALSE(test,
			   migrc_flush_pending(mms[ARRAY_SIZE(mms) - 1]));
	for (i = 0; i < ARRAY_SIZE(mms); i++)
		left += migrc_flush_pending(mms[i]);
	KUNIT_EXPECT_GT(test, left, 0);
	KUNIT_EXPECT_LT(test, left, ARRAY_SIZE(mms) - 1);
}

/**
 * struct flusher - a task that flushes at the same time as the test
 * @mm:		address space with a pending flush
 * @ptep:	a PTE of it; NULL to flush all address spaces
 * @task:	the task
 * @go:		it may begin
 */
struct flusher {
	struct mm_struct *mm;
	pte_t *ptep;
	struct task_struct *task;
	bool go;
};

static int flush_it(void *data)
{
	struct flusher *flusher = data;

	while (!READ_ONCE(flusher->go))
		cond_resched();
	if (flusher->ptep)
		__migrc_flush(flusher->mm, flusher->ptep, MIGRC_PROTECT);
	else
		migrc_flush_mms();
	while (!kthread_should_stop())
		schedule_timeout_interruptible(1);
	return 0;
}

/* An assert ends the test, so this comes before it takes a lock. */
static void new_flusher(struct kunit *test, struct flusher *flusher)
{
	if (num_online_cpus() < 2)
		kunit_skip(test, "needs two CPUs");
	flusher->task = kthread_create(flush_it, flusher, "flusher");
	KUNIT_ASSERT_FALSE(test, IS_ERR(flusher->task));
}

static void expect_blocks(struct kunit *test, struct task_struct *task)
{
	unsigned long deadline = jiffies + 10 * HZ;
	unsigned int state;

	while ((state = READ_ONCE(task->__state)) != TASK_UNINTERRUPTIBLE &&
	       time_before(jiffies, deadline))
		msleep(20);
	KUNIT_EXPECT_EQ(test, state, TASK_UNINTERRUPTIBLE);
}

/* A task that waits for another's flush of its mm does not flush again. */
static void mm_flush_serves_a_waiter(struct kunit *test)
{
	struct flusher flusher = {
		.mm = new_mm(test), .ptep = new_table(test),
	};
	s64 flushed;

	new_flusher(test, &flusher);
	migrc_mm_defer(flusher.mm, flusher.ptep);
	/* The flusher must run while the test keeps its own CPU. */
	migrate_disable();
	kthread_bind(flusher.task,
		     cpumask_any_but(cpu_online_mask, smp_processor_id()));
	wake_up_process(flusher.task);
	spin_lock(&migrc_pay_lock);
	WRITE_ONCE(flusher.go, true);
	/* It finds the flush pending, and waits for the lock. */
	mdelay(50);
	__migrc_flush_tlb_mm(flusher.mm);
	flushed = migrc_generation();
	spin_unlock(&migrc_pay_lock);
	migrate_enable();
	kthread_stop(flusher.task);
	KUNIT_EXPECT_EQ(test, migrc_generation(), flushed);
}

/* The same for all mms, by a drain or an open for writing. */
static void mm_flush_of_all_serves_a_waiter(struct kunit *test)
{
	struct flusher flusher = { .go = true };
	s64 flushed;

	new_flusher(test, &flusher);
	mutex_lock(&migrc_flush_mutex);
	wake_up_process(flusher.task);
	expect_blocks(test, flusher.task);
	migrc_flush_all_mms();
	flushed = migrc_generation();
	mutex_unlock(&migrc_flush_mutex);
	kthread_stop(flusher.task);
	KUNIT_EXPECT_EQ(test, migrc_generation(), flushed);
}

/* The flushes of fork, and of reclaim's batches. */
static void mm_flush_of_the_kernel_counts(struct kunit *test)
{
	struct mm_struct *mm = new_mm(test);
	pte_t *ptep = new_table(test);

	migrc_mm_defer(mm, ptep);
	__migrc_flush_tlb_mm(mm);
	KUNIT_EXPECT_FALSE(test, migrc_table_pending(mm, ptep));
	migrc_mm_defer(mm, ptep);
	KUNIT_EXPECT_TRUE(test, migrc_table_pending(mm, ptep));
}

/* munmap() and the like flush, so nothing is pending afterwards. */
static void mm_flush_of_a_gather_counts(struct kunit *test)
{
	struct mm_struct *mm = new_mm(test);
	pte_t *ptep = new_table(test);

	KUNIT_EXPECT_FALSE(test, __migrc_flush_gather(mm, false));
	migrc_mm_defer(mm, ptep);
	KUNIT_EXPECT_TRUE(test, __migrc_flush_gather(mm, false));
	KUNIT_EXPECT_FALSE(test, migrc_table_pending(mm, ptep));
	KUNIT_EXPECT_FALSE(test, __migrc_flush_gather(mm, false));
}

/*
 * If another task flushes the mm before a payer gathers it, the payer leaves it
 * out. A PTE that was cleared after that, but not recorded, is not flushed.
 */
static void mm_left_out_is_not_flushed(struct kunit *test)
{
	struct mm_struct *mm = new_mm(test);
	pte_t *ptep = new_table(test);
	s64 cleared;

	migrc_mm_defer(mm, ptep);
	__migrc_flush_tlb_mm(mm);
	cleared = migrc_generation();
	migrc_pay(mm);
	migrc_advance(&mm->migrc.deferred, cleared);
	KUNIT_EXPECT_TRUE(test, migrc_flush_pending(mm));
}

/* A flush that has begun does not include later deferrals. */
static void mm_flush_that_began_before(struct kunit *test)
{
	struct mm_struct *mm = new_mm(test);
	pte_t *ptep = new_table(test);
	s64 start;

	migrc_mm_defer(mm, ptep);
	__migrc_flush(mm, ptep, MIGRC_PROTECT);
	start = migrc_generation();
	migrc_mm_defer(mm, ptep);
	migrc_advance(&mm->migrc.flushed, start);
	KUNIT_EXPECT_TRUE(test, migrc_table_pending(mm, ptep));
}

static void mm_drain_flushes_all(struct kunit *test)
{
	struct mm_struct *one = new_mm(test), *other = new_mm(test);
	pte_t *ptep = new_table(test);

	migrc_mm_defer(one, ptep);
	migrc_mm_defer(other, ptep);
	__migrc_drain(MIGRC_FAILURE);
	KUNIT_EXPECT_FALSE(test, migrc_flush_pending(one));
	KUNIT_EXPECT_FALSE(test, migrc_flush_pending(other));
}

static void mm_flushed_leaves_the_list(struct kunit *test)
{
	struct mm_struct *mm = new_mm(test);
	pte_t *ptep = new_table(test);

	migrc_mm_defer(mm, ptep);
	KUNIT_EXPECT_FALSE(test, list_empty(&mm->migrc.node));
	__migrc_drain(MIGRC_FAILURE);
	__migrc_drain(MIGRC_FAILURE);
	KUNIT_EXPECT_TRUE(test, list_empty(&mm->migrc.node));
	migrc_mm_defer(mm, ptep);
	KUNIT_EXPECT_FALSE(test, list_empty(&mm->migrc.node));
}

static void free_test_folio(void *data)
{
	struct folio *folio = data;

	folio->mapping = NULL;
	atomic_set(&folio->_mapcount, -1);
	folio_put(folio);
}

static struct folio *new_folio_of(struct kunit *test, void *mapping,
				  unsigned int order)
{
	struct folio *folio = folio_alloc(GFP_KERNEL, order);

	KUNIT_ASSERT_NOT_NULL(test, folio);
	KUNIT_ASSERT_EQ(test,
			kunit_add_action_or_reset(test, free_test_folio, folio),
			0);
	folio->mapping = mapping;
	return folio;
}

static struct folio *new_folio(struct kunit *test, void *mapping)
{
	return new_folio_of(test, mapping, 0);
}

static struct folio *new_anon_folio(struct kunit *test)
{
	return new_folio(test, (void *)FOLIO_MAPPING_ANON);
}

static void read_only_without_pending_flush(struct kunit *test)
{
	struct vm_area_struct vma = { .vm_mm = new_mm(test) };
	struct folio *anon = new_anon_folio(test);
	struct folio *file = new_folio(test, NULL);

	KUNIT_EXPECT_TRUE(test, migrc_read_only(anon, &vma));
	inc_tlb_flush_pending(vma.vm_mm);
	KUNIT_EXPECT_FALSE(test, migrc_read_only(anon, &vma));
	/* The file is not open for writing, so no PTE was writable. */
	KUNIT_EXPECT_TRUE(test, migrc_read_only(file, &vma));
	dec_tlb_flush_pending(vma.vm_mm);
	KUNIT_EXPECT_TRUE(test, migrc_read_only(anon, &vma));
}

/* A scan's pending flush hides a writer only if the VMA may be written. */
static void read_only_while_scanned(struct kunit *test)
{
	struct vm_area_struct read = { .vm_mm = new_mm(test) }, write = read;
	struct folio *anon = new_anon_folio(test);

	vm_flags_init(&read, VM_READ);
	vm_flags_init(&write, VM_READ | VM_WRITE);
	mmap_read_lock(read.vm_mm);
	migrc_numa_scan_begin(&read);
	inc_tlb_flush_pending(read.vm_mm);
	KUNIT_EXPECT_TRUE(test, migrc_read_only(anon, &read));
	KUNIT_EXPECT_FALSE(test, migrc_read_only(anon, &write));
	dec_tlb_flush_pending(read.vm_mm);
	migrc_numa_scan_end(&read);
	mmap_read_unlock(read.vm_mm);
	inc_tlb_flush_pending(read.vm_mm);
	KUNIT_EXPECT_FALSE(test, migrc_read_only(anon, &read));
	dec_tlb_flush_pending(read.vm_mm);
}

static void read_only_not_while_forking(struct kunit *test)
{
	struct vm_area_struct vma = { .vm_mm = new_mm(test) };
	struct folio *anon = new_anon_folio(test);

	migrc_fork_begin(vma.vm_mm);
	KUNIT_EXPECT_FALSE(test, migrc_read_only(anon, &vma));
	migrc_fork_end(vma.vm_mm);
	KUNIT_EXPECT_TRUE(test, migrc_read_only(anon, &vma));
}

/* Such a PTE comes back inaccessible, and its removal would flush nothing. */
static void read_only_not_if_reads_are_protected(struct kunit *test)
{
	struct vm_area_struct vma = { .vm_mm = new_mm(test) };

	if (!IS_ENABLED(CONFIG_USERFAULTFD) ||
	    !IS_ENABLED(CONFIG_ARCH_HAS_PTE_PROTNONE))
		kunit_skip(test, "no read-write protection");
	vm_flags_init(&vma, VM_READ | VM_UFFD_RWP);
	KUNIT_EXPECT_FALSE(test, migrc_read_only(new_anon_folio(test), &vma));
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

static void set_bound(struct kunit *test, unsigned long pages)
{
	void *old = (void *)migrc_bound();

	KUNIT_ASSERT_EQ(test,
			kunit_add_action_or_reset(test, restore_bound, old), 0);
	migrc_set_bound(pages);
}

/* Sources that do not fit are flushed and freed with all others. */
static void quarantine_bound_holds(struct kunit *test)
{
	int nid = first_memory_node;

	set_bound(test, 4);
	put_into_quarantine(test, 3, NULL, nid);
	KUNIT_EXPECT_EQ(test, migrc_quarantined(), 3);
	put_into_quarantine(test, 1, NULL, nid);
	KUNIT_EXPECT_EQ(test, migrc_quarantined(), 4);
	put_into_quarantine(test, 1, NULL, nid);
	KUNIT_EXPECT_EQ(test, migrc_quarantined(), 0);
	put_into_quarantine(test, 9, NULL, nid);
	KUNIT_EXPECT_EQ(test, migrc_quarantined(), 0);
}

static void quarantine_bound_of_nothing(struct kunit *test)
{
	set_bound(test, 0);
	put_into_quarantine(test, 1, NULL, first_memory_node);
	KUNIT_EXPECT_EQ(test, migrc_quarantined(), 0);
}

static void quarantine_bound_is_per_node(struct kunit *test)
{
	int nid = first_memory_node, other = next_memory_node(nid);

	if (other == MAX_NUMNODES)
		kunit_skip(test, "needs two nodes with memory");
	set_bound(test, 4);
	put_into_quarantine(test, 4, NULL, nid);
	put_into_quarantine(test, 4, NULL, other);
	KUNIT_EXPECT_EQ(test, migrc_quarantined(), 8);
	KUNIT_EXPECT_EQ(test, migrc_node_quarantined(other), 4);
	put_into_quarantine(test, 1, NULL, other);
	KUNIT_EXPECT_EQ(test, migrc_quarantined(), 0);
}

/* However large the bound, a node's quarantine holds a share of the node. */
static void quarantine_bound_is_a_share_of_the_node(struct kunit *test)
{
	int nid;

	set_bound(test, ULONG_MAX);
	for_each_node_state(nid, N_MEMORY)
		KUNIT_EXPECT_LE_MSG(test, migrc_node_bound(nid),
				    node_present_pages(nid) / 32, "node %d",
				    nid);
}

/* The outer batch has folios locked, so a nested one leaves it to a worker. */
static void quarantine_nested_batch_does_not_drain(struct kunit *test)
{
	struct migrc_batch outer = {};
	unsigned int tries = 100;

	set_bound(test, 4);
	put_into_quarantine(test, 9, &outer, first_memory_node);
	while (migrc_quarantined() && tries--)
		msleep(20);
	KUNIT_EXPECT_EQ(test, migrc_quarantined(), 0);
	KUNIT_EXPECT_GE(test, migrc_quarantine_peak(), 9);
}

static void quarantine_is_reclaimed(struct kunit *test)
{
	put_into_quarantine(test, 3, NULL, first_memory_node);
	KUNIT_EXPECT_EQ(test, __migrc_reclaim(), 3);
	KUNIT_EXPECT_EQ(test, migrc_quarantined(), 0);
	KUNIT_EXPECT_TRUE(test, migrc_paused());
	KUNIT_EXPECT_EQ(test, __migrc_reclaim(), 0);
}

/* Direct reclaim gets on while another task drains. */
static void quarantine_reclaim_does_not_queue(struct kunit *test)
{
	put_into_quarantine(test, 3, NULL, first_memory_node);
	mutex_lock(&migrc_drain_mutex);
	__migrc_drain(MIGRC_PRESSURE);
	mutex_unlock(&migrc_drain_mutex);
	KUNIT_EXPECT_EQ(test, migrc_quarantined(), 3);
}

static void free_unlocked(struct list_head *folios)
{
	struct kunit *test = kunit_get_current_test();

	KUNIT_EXPECT_FALSE(test, list_empty(folios));
	KUNIT_EXPECT_FALSE(test, mutex_is_locked(&migrc_drain_mutex));
	kunit_deactivate_static_stub(test, migrc_free);
	migrc_free(folios);
}

/* A task that waits for a drain's flush does not wait until it has freed. */
static void quarantine_is_freed_unlocked(struct kunit *test)
{
	put_into_quarantine(test, 3, NULL, first_memory_node);
	kunit_activate_static_stub(test, migrc_free, free_unlocked);
	__migrc_drain(MIGRC_DRAIN);
	KUNIT_EXPECT_EQ(test, migrc_quarantined(), 0);
	KUNIT_EXPECT_EQ(test, migrc_being_freed(), 0);
}

static int drain_it(void *done)
{
	__migrc_drain(MIGRC_DRAIN);
	complete(done);
	while (!kthread_should_stop())
		schedule_timeout_interruptible(1);
	return 0;
}

/* If batches drain one after the other, one is always active. */
static void quarantine_drain_waits_for_earlier_ones(struct kunit *test)
{
	struct migrc_active_drain earlier, later;
	DECLARE_COMPLETION_ONSTACK(done);
	struct task_struct *task;

	task = kthread_create(drain_it, &done, "drainer");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	migrc_drain_begin(&earlier);
	wake_up_process(task);
	expect_blocks(test, task);
	KUNIT_EXPECT_FALSE(test, completion_done(&done));
	migrc_drain_begin(&later);
	migrc_drain_end(&earlier);
	KUNIT_EXPECT_TRUE(test, wait_for_completion_timeout(&done, 10 * HZ));
	migrc_drain_end(&later);
	kthread_stop(task);
}

/* A drain by others leaves the worker armed for the age that held then. */
static void quarantine_age_is_of_an_armed_worker(struct kunit *test)
{
	unsigned long deadline = jiffies + 10 * HZ;
	struct migrc_batch batch = {};

	put_into_quarantine(test, 1, NULL, numa_node_id());
	__migrc_drain(MIGRC_DRAIN);
	WRITE_ONCE(migrc_max_age_ms, 1);
	migrc_apply_max_age();
	new_sources(test, 1, numa_node_id(), &batch);
	migrc_quarantine(&batch);
	while (migrc_quarantined() && time_before(jiffies, deadline))
		msleep(20);
	KUNIT_EXPECT_EQ(test, migrc_quarantined(), 0);
}

/* kswapd drains the quarantine, but not less than a batch. */
static void quarantine_balances(struct kunit *test)
{
	int nid = first_memory_node;

	put_into_quarantine(test, 3, NULL, nid);
	__migrc_balance(nid);
	KUNIT_EXPECT_EQ(test, migrc_quarantined(), 3);
	put_into_quarantine(test, MIGRC_BATCH_PAGES - 3, NULL, nid);
	__migrc_balance(nid);
	KUNIT_EXPECT_EQ(test, migrc_quarantined(), 0);
}

/* More mms than are visited without dropping the lock. */
static void mm_drain_flushes_many(struct kunit *test)
{
	struct mm_struct *mms[150];
	pte_t *ptep = new_table(test);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(mms); i++) {
		mms[i] = new_mm(test);
		migrc_mm_defer(mms[i], ptep);
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
}

/*
 * The migration entries of a folio that stays may be zapped: it must not be
 * freed before a flush.
 */
static void folio_that_stays_is_flushed(struct kunit *test)
{
	struct folio *folio = new_anon_folio(test);
	struct mm_struct *mm = new_mm(test);
	pte_t *ptep = new_table(test);
	struct migrc_batch batch = {
		.begun = true, .outer = current->migrc_batch,
	};

	INIT_LIST_HEAD(&batch.sources);
	migrc_mm_defer(mm, ptep);
	__migrc_folio_not_migrated(&batch);
	KUNIT_EXPECT_TRUE(test, migrc_flush_pending(mm));
	batch.seen = MIGRC_SEEN_DEFERRED;
	__migrc_folio_not_migrated(&batch);
	KUNIT_EXPECT_FALSE(test, migrc_flush_pending(mm));

	/* Each folio that was deferred has moved, then one has not. */
	migrc_mm_defer(mm, ptep);
	batch.seen = MIGRC_SEEN_DEFERRED;
	KUNIT_EXPECT_EQ(test, __migrc_folio_unmapped(&batch, folio),
			MIGRC_FOLIO_DEFERRED);
	KUNIT_EXPECT_EQ(test, batch.nr_deferred, 1);
	batch.nr_deferred = 0;
	__migrc_batch_end(&batch);
	KUNIT_EXPECT_TRUE(test, migrc_flush_pending(mm));
	batch.nr_deferred = 1;
	__migrc_batch_end(&batch);
	KUNIT_EXPECT_FALSE(test, migrc_flush_pending(mm));
}

/* The folios of a run take turns. Each one has a decision of its own. */
static void folios_take_turns(struct kunit *test)
{
	struct migrc_batch batch = {};
	struct migrc_batch *outer = current->migrc_batch;
	struct vm_area_struct vma = { .vm_mm = new_mm(test) };
	struct folio *folios[] = {
		new_anon_folio(test),
		new_folio(test, (void *)FOLIO_MAPPING_KSM),
	};
	unsigned long state[ARRAY_SIZE(folios)] = {};
	pte_t *ptep = new_table(test);
	unsigned int i, turn;

	current->migrc_batch = &batch;
	for (turn = 0; turn < 2; turn++) {
		for (i = 0; i < ARRAY_SIZE(folios); i++) {
			pte_t pte = mk_pte(folio_page(folios[i], 0),
					   PAGE_READONLY);
			bool deferred;

			__migrc_folio_resume(state[i]);
			deferred = __migrc_try_defer_pte(folios[i], &vma, pte);
			KUNIT_EXPECT_EQ_MSG(test, deferred, !i,
					    "folio %u, PTE %u", i, turn);
			if (deferred)
				migrc_defer_pte(vma.vm_mm, turn * PAGE_SIZE,
						ptep, pte);
			state[i] = __migrc_folio_suspend();
		}
	}
	for (i = 0; i < ARRAY_SIZE(folios); i++) {
		__migrc_folio_resume(state[i]);
		KUNIT_EXPECT_EQ(test, i ? 0 : MIGRC_FOLIO_DEFERRED,
				__migrc_folio_unmapped(&batch, folios[i]));
	}
	KUNIT_EXPECT_EQ(test, batch.nr_ptes, 2);
	current->migrc_batch = outer;
	__migrc_drain(MIGRC_FAILURE);
}

/* A batch with folios deferred in part flushes once and defers no more. */
static void mixed_is_flushed_once_a_batch(struct kunit *test)
{
	struct migrc_batch batch = {};
	struct migrc_batch *outer = current->migrc_batch;
	struct vm_area_struct vma = { .vm_mm = new_mm(test) };
	struct folio *folio = new_anon_folio(test);
	pte_t *ptep = new_table(test), pte;
	unsigned int i;

	put_into_quarantine(test, 1, NULL, first_memory_node);
	pte = mk_pte(folio_page(folio, 0), PAGE_READONLY);
	batch.seen = MIGRC_SEEN_DEFERRED;
	KUNIT_EXPECT_EQ(test, __migrc_folio_unmapped(&batch, folio),
			MIGRC_FOLIO_DEFERRED);
	for (i = 0; i < 2; i++) {
		batch.seen = MIGRC_SEEN_DEFERRED | MIGRC_SEEN_WRITABLE;
		KUNIT_EXPECT_EQ(test, __migrc_folio_unmapped(&batch, folio), 0);
	}
	current->migrc_batch = &batch;
	KUNIT_EXPECT_FALSE(test, __migrc_try_defer_pte(folio, &vma, pte));
	KUNIT_EXPECT_EQ(test, batch.seen, MIGRC_SEEN_REFUSED);
	KUNIT_EXPECT_FALSE(test, __migrc_quarantine_folio(folio));
	KUNIT_EXPECT_EQ(test, batch.nr_deferred, 0);
	batch.seen = 0;
	batch.mixed = false;
	KUNIT_EXPECT_TRUE(test, __migrc_try_defer_pte(folio, &vma, pte));
	current->migrc_batch = outer;
	migrc_mm_defer(vma.vm_mm, ptep);
	migrc_batch_flush(&batch);
	KUNIT_EXPECT_FALSE(test, migrc_flush_pending(vma.vm_mm));
	/* Each part of a batch in runs asks. */
	migrc_mm_defer(vma.vm_mm, ptep);
	migrc_batch_flush(&batch);
	KUNIT_EXPECT_TRUE(test, migrc_flush_pending(vma.vm_mm));
	/* Its folios are locked, so this is not the time to free. */
	KUNIT_EXPECT_EQ(test, migrc_quarantined(), 1);
}

static bool tries_to_defer(struct folio *folio, struct vm_area_struct *vma,
			   pgprot_t prot)
{
	struct migrc_batch batch = {}, *outer = current->migrc_batch;
	bool deferred;

	current->migrc_batch = &batch;
	deferred = __migrc_try_defer_pte(folio, vma,
					 mk_pte(folio_page(folio, 0), prot));
	current->migrc_batch = outer;
	return deferred;
}

/* One case for each reason for which a PTE of anonymous memory is refused. */
static void anon_rules(struct kunit *test)
{
	struct vm_area_struct vma = { .vm_mm = new_mm(test) };
	struct folio *folio = new_anon_folio(test);

	KUNIT_EXPECT_TRUE(test, tries_to_defer(folio, &vma, PAGE_READONLY));
	KUNIT_EXPECT_FALSE(test, tries_to_defer(folio, &vma, PAGE_SHARED));
	folio->mapping = (void *)FOLIO_MAPPING_KSM;
	KUNIT_EXPECT_FALSE(test, tries_to_defer(folio, &vma, PAGE_READONLY));
	folio->mapping = (void *)FOLIO_MAPPING_ANON;
	__folio_set_hugetlb(folio);
	KUNIT_EXPECT_FALSE(test, tries_to_defer(folio, &vma, PAGE_READONLY));
	__folio_clear_hugetlb(folio);
	SetPageHWPoison(folio_page(folio, 0));
	KUNIT_EXPECT_FALSE(test, tries_to_defer(folio, &vma, PAGE_READONLY));
	ClearPageHWPoison(folio_page(folio, 0));
	KUNIT_EXPECT_TRUE(test, tries_to_defer(folio, &vma, PAGE_READONLY));
#ifdef CONFIG_MMU_NOTIFIER
	vma.vm_mm->notifier_subscriptions = (void *)1UL;
	KUNIT_EXPECT_FALSE(test, tries_to_defer(folio, &vma, PAGE_READONLY));
	vma.vm_mm->notifier_subscriptions = NULL;
#endif
}

#ifdef CONFIG_MEMORY_ISOLATION
/* A caller waits for each page of an isolated pageblock to be free. */
static void isolated_is_refused(struct kunit *test)
{
	struct vm_area_struct vma = { .vm_mm = new_mm(test) };
	struct folio *folio = new_folio_of(test, (void *)FOLIO_MAPPING_ANON,
					   pageblock_order);

	/* The folio is the whole pageblock, so no free page changes lists. */
	set_pageblock_isolate(&folio->page);
	KUNIT_EXPECT_FALSE(test, tries_to_defer(folio, &vma, PAGE_READONLY));
	clear_pageblock_isolate(&folio->page);
	KUNIT_EXPECT_TRUE(test, tries_to_defer(folio, &vma, PAGE_READONLY));
}
#endif

static bool begins(enum migrate_reason reason, unsigned long private)
{
	struct migrc_batch batch;
	bool defers;

	__migrc_batch_begin(&batch, private, reason);
	defers = current->migrc_batch == &batch;
	__migrc_batch_end(&batch);
	return defers;
}

static void disable(void *unused)
{
	WRITE_ONCE(migrc_enabled, false);
}

/* A caller that needs the sources at once gets them at once. */
static void reasons(struct kunit *test)
{
	struct compact_control cc = { .order = -1 };
	unsigned long private = (unsigned long)&cc;

	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, disable, NULL),
			0);
	/* After a test of reclaim. */
	while (migrc_paused())
		msleep(20);
	KUNIT_EXPECT_FALSE(test, begins(MR_SYSCALL, 0));
	WRITE_ONCE(migrc_enabled, true);
	KUNIT_EXPECT_TRUE(test, begins(MR_SYSCALL, 0));
	KUNIT_EXPECT_TRUE(test, begins(MR_DEMOTION, 0));
	KUNIT_EXPECT_FALSE(test, begins(MR_CONTIG_RANGE, 0));
	KUNIT_EXPECT_FALSE(test, begins(MR_MEMORY_HOTPLUG, 0));
	KUNIT_EXPECT_FALSE(test, begins(MR_MEMORY_FAILURE, 0));
	KUNIT_EXPECT_TRUE(test, begins(MR_COMPACTION, private));
	cc.order = pageblock_order;
	KUNIT_EXPECT_TRUE(test, begins(MR_COMPACTION, private));
	cc.order = pageblock_order - 1;
	KUNIT_EXPECT_FALSE(test, begins(MR_COMPACTION, private));
	cc.order = 1;
	KUNIT_EXPECT_FALSE(test, begins(MR_COMPACTION, private));
	/* Nothing may wait. */
	set_bound(test, 0);
	KUNIT_EXPECT_FALSE(test, begins(MR_SYSCALL, 0));
}

static void put_file(void *file)
{
	fput(file);
}

static void not_used(void *unused)
{
	static_branch_dec(&migrc_used);
}

#ifdef CONFIG_CONTIG_ALLOC
/* Otherwise a source that waits would look like a page that cannot move. */
static void contiguous_allocation_drains(struct kunit *test)
{
	struct folio *folio = folio_alloc(GFP_KERNEL, pageblock_order);
	struct migrc_batch batch = {};
	unsigned long start;
	int err;

	KUNIT_ASSERT_NOT_NULL(test, folio);
	start = folio_pfn(folio);
	static_branch_inc(&migrc_used);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, not_used, NULL),
			0);
	INIT_LIST_HEAD(&batch.sources);
	list_add(&folio->lru, &batch.sources);
	set_bound(test, pageblock_nr_pages);
	end_batch(test, &batch);
	KUNIT_ASSERT_GE(test, migrc_quarantined(), pageblock_nr_pages);
	err = alloc_contig_range(start, start + pageblock_nr_pages,
				 ACR_FLAGS_NONE, GFP_KERNEL);
	KUNIT_ASSERT_EQ(test, err, 0);
	free_contig_range(start, pageblock_nr_pages);
}

/**
 * struct late - a folio in a range whose migration ends during the allocation
 * @folio:	the folio, in an LRU list until then
 * @others:	another source for each drain until then, so that each frees
 * @drains:	drains so far
 */
struct late {
	struct folio *folio;
	struct migrc_batch others[2];
	unsigned int drains;
};

static void end_late_migration(struct late *late)
{
	struct migrc_batch batch = {
		.sources = LIST_HEAD_INIT(batch.sources),
	};

	if (!folio_isolate_lru(late->folio))
		return;
	list_add(&late->folio->lru, &batch.sources);
	folio_put(late->folio);
	late->folio = NULL;
	migrc_quarantine(&batch);
}

/* The first drain precedes the isolation, the second one follows it. */
static void free_at_drain(struct list_head *folios)
{
	struct kunit *test = kunit_get_current_test();
	struct late *late = test->priv;

	kunit_deactivate_static_stub(test, migrc_free);
	migrc_free(folios);
	if (late->drains++) {
		end_late_migration(late);
		return;
	}
	kunit_activate_static_stub(test, migrc_free, free_at_drain);
	migrc_quarantine(&late->others[1]);
}

/* Another task's migration may end after the range was isolated. */
static void contiguous_allocation_drains_twice(struct kunit *test)
{
	struct late late = {};
	unsigned long start;
	int err;

	late.folio = folio_alloc(GFP_KERNEL, pageblock_order);
	KUNIT_ASSERT_NOT_NULL(test, late.folio);
	start = folio_pfn(late.folio);
	KUNIT_ASSERT_EQ(test, mem_cgroup_charge(late.folio, NULL, GFP_KERNEL),
			0);
	folio_add_lru(late.folio);
	lru_add_drain_all();
	new_sources(test, 1, first_memory_node, &late.others[0]);
	new_sources(test, 1, first_memory_node, &late.others[1]);
	static_branch_inc(&migrc_used);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, not_used, NULL),
			0);
	set_bound(test, pageblock_nr_pages + 1);
	end_batch(test, &late.others[0]);
	test->priv = &late;
	kunit_activate_static_stub(test, migrc_free, free_at_drain);
	err = alloc_contig_range(start, start + pageblock_nr_pages,
				 ACR_FLAGS_NONE, GFP_KERNEL);
	KUNIT_EXPECT_EQ(test, late.drains, 2);
	KUNIT_EXPECT_NULL(test, late.folio);
	KUNIT_EXPECT_EQ(test, err, 0);
	if (!err)
		free_contig_range(start, pageblock_nr_pages);
}
#endif

/* The second half of mprotect(), after the change of the VMA. */
static void change_all(struct vm_area_struct *vma)
{
	struct mmu_gather tlb;

	vma_start_write(vma);
	tlb_gather_mmu(&tlb, vma->vm_mm);
	change_protection(&tlb, vma, vma->vm_start, vma->vm_end, 0);
	tlb_finish_mmu(&tlb);
}

/*
 * Migration has mapped the copy with the VMA's new protection, so mprotect()
 * finds no PTE to change.
 */
static void mprotect_flushes_unchanged_ptes(struct kunit *test)
{
	unsigned long addr = kunit_vm_mmap(test, NULL, SZ_1G, PAGE_SIZE,
					   PROT_READ | PROT_WRITE,
					   MAP_PRIVATE | MAP_ANONYMOUS, 0);
	struct mm_struct *mm = current->mm;
	struct vm_area_struct *vma;
	spinlock_t *ptl;	/* of the page table */
	pte_t *ptep;

	KUNIT_ASSERT_FALSE(test, IS_ERR_VALUE(addr));
	KUNIT_ASSERT_EQ(test, put_user(1, (int __user *)addr), 0);
	static_branch_inc(&migrc_used);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, not_used, NULL),
			0);
	mmap_write_lock(mm);
	vma = vma_lookup(mm, addr);
	/* The PTE is writable; a private VMA's protection is read-only */
	change_all(vma);
	ptep = get_locked_pte(mm, addr, &ptl);
	migrc_mm_defer(mm, ptep);
	pte_unmap_unlock(ptep, ptl);
	KUNIT_EXPECT_TRUE(test, migrc_flush_pending(mm));
	change_all(vma);
	KUNIT_EXPECT_FALSE(test, migrc_flush_pending(mm));
	mmap_write_unlock(mm);
	/* The thread may exit after not_used(), and not leave the list then */
	__migrc_mm_exit(mm);
}

/* memfd_pin_folios() needs no write access, yet lets a device write. */
static void file_that_is_pinned_is_flushed(struct kunit *test)
{
	struct mm_struct *mm = new_mm(test);
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
	folio = shmem_read_folio(file->f_mapping, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(folio));
	migrc_mm_defer(mm, new_table(test));
	migrc_file_commit(folio);
	folio_put(folio);
	KUNIT_EXPECT_TRUE(test, migrc_flush_pending(mm));
	nr = memfd_pin_folios(file, 0, PAGE_SIZE - 1, &pinned, 1, &offset);
	KUNIT_EXPECT_EQ(test, nr, 1);
	KUNIT_EXPECT_FALSE(test, migrc_flush_pending(mm));
	if (nr == 1)
		unpin_folio(pinned);
}

/**
 * struct test_file - a file that exists only in memory
 * @type:	its file system's
 * @sb:		its super block
 * @inode:	its inode
 * @mapping:	its page cache
 */
struct test_file {
	struct file_system_type type;
	struct super_block sb;
	struct inode inode;
	struct address_space mapping;
};

static struct test_file *new_file(struct kunit *test)
{
	struct test_file *file = kunit_kzalloc(test, sizeof(*file), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, file);
	file->type.fs_flags = FS_STABLE_CONTENT;
	file->sb.s_type = &file->type;
	file->inode.i_sb = &file->sb;
	file->inode.i_mode = S_IFREG;
	file->inode.i_size = PAGE_SIZE;
	file->mapping.host = &file->inode;
	return file;
}

/* One case for each reason for which a folio of a file is refused. */
static void file_rules(struct kunit *test)
{
	struct test_file *file = new_file(test);
	struct folio *folio = new_folio(test, &file->mapping);

	folio->index = 0;
	KUNIT_EXPECT_TRUE(test, migrc_file_eligible(folio));
	file->inode.i_mode = S_IFBLK;
	KUNIT_EXPECT_FALSE(test, migrc_file_eligible(folio));
	file->inode.i_mode = S_IFREG;
	file->sb.s_flags = SB_KERNMOUNT;
	KUNIT_EXPECT_FALSE(test, migrc_file_eligible(folio));
	file->sb.s_flags = 0;
	file->inode.i_flags = S_NOQUOTA;
	KUNIT_EXPECT_FALSE(test, migrc_file_eligible(folio));
	file->inode.i_flags = 0;
	/* A block device under it does not make a file system safe. */
	file->type.fs_flags = FS_REQUIRES_DEV;
	KUNIT_EXPECT_FALSE(test, migrc_file_eligible(folio));
	file->type.fs_flags = FS_STABLE_CONTENT;
	atomic_set(&file->inode.i_writecount, 1);
	KUNIT_EXPECT_FALSE(test, migrc_file_eligible(folio));
	atomic_set(&file->inode.i_writecount, 0);
	KUNIT_EXPECT_TRUE(test, migrc_file_eligible(folio));
}

/* Writeback zeroes a dirty folio beyond the end of its file. */
static void file_tail_is_left_out(struct kunit *test)
{
	struct test_file *file = new_file(test);
	struct folio *folio = new_folio(test, &file->mapping);

	folio->index = 0;
	file->inode.i_size = 100;
	KUNIT_EXPECT_TRUE(test, migrc_file_eligible(folio));
	folio_set_dirty(folio);
	KUNIT_EXPECT_FALSE(test, migrc_file_eligible(folio));
	file->inode.i_size = PAGE_SIZE;
	KUNIT_EXPECT_TRUE(test, migrc_file_eligible(folio));
	folio_clear_dirty(folio);
}

/* Only the opener of a file with a pending flush flushes. It frees nothing. */
static void file_open_is_exact(struct kunit *test)
{
	struct test_file *waits = new_file(test), *other = new_file(test);
	struct folio *folio = new_folio(test, &waits->mapping);
	s64 before;

	/* A file of an earlier test may have had the address of @other. */
	migrc_flush_mms();
	put_into_quarantine(test, 1, NULL, first_memory_node);
	KUNIT_EXPECT_TRUE(test, migrc_file_commit(folio));
	before = migrc_generation();
	migrc_file_flush(&other->inode);
	KUNIT_EXPECT_EQ(test, migrc_generation(), before);
	migrc_file_flush(&waits->inode);
	KUNIT_EXPECT_GT(test, migrc_generation(), before);
	before = migrc_generation();
	migrc_file_flush(&waits->inode);
	KUNIT_EXPECT_EQ(test, migrc_generation(), before);
	KUNIT_EXPECT_EQ(test, migrc_quarantined(), 1);
}

/* More files than slots: one of them finds its slot taken until a flush. */
static void file_slot_is_not_shared(struct kunit *test)
{
	const unsigned int nr = 1025;
	struct inode *inodes = kvcalloc(nr, sizeof(*inodes), GFP_KERNEL);
	struct address_space mapping = {};
	struct folio *folio = new_folio(test, &mapping);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, inodes);
	for (i = 0; i < nr; i++) {
		mapping.host = &inodes[i];
		if (!migrc_file_commit(folio))
			break;
	}
	KUNIT_EXPECT_LT(test, i, nr);
	migrc_flush_mms();
	KUNIT_EXPECT_TRUE(test, migrc_file_commit(folio));
	kvfree(inodes);
	migrc_flush_mms();
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
	KUNIT_CASE(mm_other_table_pays_nothing),
	KUNIT_CASE(mm_flush_serves_others),
	KUNIT_CASE(mm_flush_serves_the_payer),
	KUNIT_CASE(mm_flush_serves_a_waiter),
	KUNIT_CASE(mm_flush_of_all_serves_a_waiter),
	KUNIT_CASE(mm_flush_of_the_kernel_counts),
	KUNIT_CASE(mm_flush_of_a_gather_counts),
	KUNIT_CASE(mm_left_out_is_not_flushed),
	KUNIT_CASE(mm_flush_that_began_before),
	KUNIT_CASE(mm_drain_flushes_all),
	KUNIT_CASE(mm_flushed_leaves_the_list),
	KUNIT_CASE(read_only_without_pending_flush),
	KUNIT_CASE(read_only_while_scanned),
	KUNIT_CASE(read_only_not_while_forking),
	KUNIT_CASE(read_only_not_if_reads_are_protected),
	KUNIT_CASE(advance_never_goes_back),
	KUNIT_CASE(quarantine_bound_holds),
	KUNIT_CASE(quarantine_bound_of_nothing),
	KUNIT_CASE(quarantine_bound_is_per_node),
	KUNIT_CASE(quarantine_bound_is_a_share_of_the_node),
	KUNIT_CASE(quarantine_nested_batch_does_not_drain),
	KUNIT_CASE(quarantine_is_reclaimed),
	KUNIT_CASE(quarantine_reclaim_does_not_queue),
	KUNIT_CASE(quarantine_is_freed_unlocked),
	KUNIT_CASE(quarantine_drain_waits_for_earlier_ones),
	KUNIT_CASE(quarantine_age_is_of_an_armed_worker),
	KUNIT_CASE(quarantine_balances),
	KUNIT_CASE(mm_drain_flushes_many),
	KUNIT_CASE(unmapped_is_what_the_caller_says),
	KUNIT_CASE(folio_that_stays_is_flushed),
	KUNIT_CASE(folios_take_turns),
	KUNIT_CASE(mixed_is_flushed_once_a_batch),
	KUNIT_CASE(anon_rules),
#ifdef CONFIG_MEMORY_ISOLATION
	KUNIT_CASE(isolated_is_refused),
#endif
#ifdef CONFIG_CONTIG_ALLOC
	KUNIT_CASE(contiguous_allocation_drains),
	KUNIT_CASE(contiguous_allocation_drains_twice),
#endif
	KUNIT_CASE(reasons),
	KUNIT_CASE(mprotect_flushes_unchanged_ptes),
	KUNIT_CASE(file_that_is_pinned_is_flushed),
	KUNIT_CASE(file_rules),
	KUNIT_CASE(file_tail_is_left_out),
	KUNIT_CASE(file_open_is_exact),
	KUNIT_CASE(file_slot_is_not_shared),
	{}
};

static struct kunit_suite migrc_suite = {
	.name = "ferry_migrc",
	.test_cases = migrc_cases,
};

kunit_test_suites(&migrc_suite);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Tests of the deferred flush");
