// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Pending flushes of an address space
 *
 * One generation counter serves all address spaces: it is incremented when a
 * flush begins. An address space (mm) records the generation of its newest PTE
 * that was cleared without a flush (deferred), and the generation at which its
 * newest flush began (flushed). A flush is pending while deferred >= flushed.
 *
 * Correctness. Migration clears the PTE, then reads the generation, c. A flush
 * increments the generation to t, then flushes. If c < t, the PTE was cleared
 * before the flush began, so a CPU that has done its part of the flush neither
 * has nor can fetch the old translation. If c >= t, deferred >= flushed after
 * that flush, so a flush remains pending. Both sides have a full barrier
 * between their two steps.
 *
 * A flush that leaves an mm out, because none is pending, must not be recorded
 * in it: a PTE may have been cleared whose deferral is not recorded yet, and
 * would then count as flushed.
 *
 * The caller of migrc_flush() holds the lock of the page table that it is
 * about to change. Each page table (ptdesc) has the generation of its newest
 * deferral, written and read under that lock. So the caller flushes only if the
 * flush of a PTE of this table is pending, and it sees each deferral in the
 * table. It need not see deferrals in other tables, because their PTEs are not
 * about to change.
 *
 * A flush is always of a whole mm, so it serves all its tables. If the kernel
 * flushes a whole mm by itself, at the end of fork and for the batches of
 * reclaim, migrc_flush_tlb_mm() records that flush. An mmu_gather that is about
 * to flush a range of an mm with a pending flush flushes all of it instead:
 * migrc_flush_gather(). A CPU that does not run the mm when it is flushed
 * flushes before it runs the mm again, as after any flush.
 *
 * Cost. Migration would have flushed all mms of a batch together, by one
 * interrupt of each CPU. So does migrc_flush(): it flushes up to
 * MIGRC_MMS_LOCKED mms with a pending flush, the caller's first. While no more
 * share the pages of a batch, the batch costs at most one flush, as without
 * migrc, whoever is first. Tasks that must flush at the same time wait for one
 * flush and then find nothing to do.
 *
 * Life cycle:
 *
 *   1. The first deferral adds the mm to the list.
 *   2. migrc_flush_mms() removes each mm without a pending flush.
 *   3. __migrc_mm_exit() removes the mm, after its last user PTE is gone and
 *      therefore no deferral can follow.
 *
 * Locking: migrc_mms_lock protects the list, and the marks of flushes in each
 * mm in it. migrc_pay_lock serialises the flushes of migrc_flush(),
 * migrc_flush_mutex those of all mms. Page table lock -> migrc_pay_lock ->
 * migrc_mms_lock; migrc_flush_mutex -> migrc_mms_lock. Both flush with
 * interrupts on, so CPUs that wait for a lock take part in the flush.
 */

#include <kunit/visibility.h>
#include <linux/export.h>
#include <linux/jump_label.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/pgtable.h>
#include <linux/spinlock.h>

#include "arch.h"
#include "internal.h"

/* A visit of so many takes less time than an IPI. */
#define MIGRC_MMS_LOCKED	64

DEFINE_STATIC_KEY_FALSE(migrc_used);
/* For get_write_access(), an inline function that modules call. */
EXPORT_SYMBOL(migrc_used);

/* Written by sysfs.c. While it is false nothing is deferred. */
bool migrc_enabled;

static atomic64_t migrc_newest_gen = ATOMIC64_INIT(1);
/* The generation at which the newest complete flush of all mms began. */
atomic64_t migrc_flushed_gen = ATOMIC64_INIT(1);

VISIBLE_IF_KUNIT struct mutex migrc_flush_mutex =
	__MUTEX_INITIALIZER(migrc_flush_mutex);
VISIBLE_IF_KUNIT spinlock_t migrc_pay_lock =
	__SPIN_LOCK_UNLOCKED(migrc_pay_lock);

static DEFINE_SPINLOCK(migrc_mms_lock);
static LIST_HEAD(migrc_mms);

/**
 * migrc_mm_init() - initialise a new address space: no flush is pending
 * @mm: the address space; may be a copy of another
 *
 * Context: any.
 */
void migrc_mm_init(struct mm_struct *mm)
{
	atomic64_set(&mm->migrc.deferred, 0);
	atomic64_set(&mm->migrc.flushed, 1);
	mm->migrc.gathered = 0;
	mm->migrc.paid = 0;
	mm->migrc.forking = false;
	atomic_set(&mm->migrc.scans, 0);
	INIT_LIST_HEAD(&mm->migrc.node);
	migrc_check_init(mm);
}

/* See migrc_mm_exit(). */
void __migrc_mm_exit(struct mm_struct *mm)
{
	migrc_check_exit(mm);
	if (!atomic64_read(&mm->migrc.deferred))
		return;
	/* There is no PTE left to defer, so nothing adds it again. */
	spin_lock(&migrc_mms_lock);
	list_del_init(&mm->migrc.node);
	spin_unlock(&migrc_mms_lock);
}

/**
 * migrc_flush_pending() - check for a deferral without a later flush
 * @mm: address space
 *
 * Context: any.
 * Return: true if a flush of @mm is pending.
 */
bool migrc_flush_pending(const struct mm_struct *mm)
{
	if (migrc_should_fail(MIGRC_FAIL_GENERATION))
		return false;
	return atomic64_read(&mm->migrc.deferred) >=
	       atomic64_read(&mm->migrc.flushed);
}

static struct ptdesc *migrc_table(const pte_t *ptep)
{
	return virt_to_ptdesc(ptep);
}

/**
 * migrc_table_pending() - check a page table for a deferral without a later
 * flush
 * @mm:		address space
 * @ptep:	a PTE of the table
 *
 * Context: under the table's lock.
 * Return: true if a flush of a PTE in the table is pending.
 */
bool migrc_table_pending(const struct mm_struct *mm, const pte_t *ptep)
{
	if (migrc_should_fail(MIGRC_FAIL_GENERATION))
		return false;
	return (s64)migrc_table(ptep)->pt_deferred >=
	       atomic64_read(&mm->migrc.flushed);
}

/**
 * migrc_generation() - read the generation
 *
 * Context: any. The caller has a full barrier between the step that it dates
 * and this.
 * Return: the number of flushes that have begun, from 1.
 */
s64 migrc_generation(void)
{
	return atomic64_read(&migrc_newest_gen);
}

/**
 * migrc_mm_defer() - record that a PTE was cleared without a flush
 * @mm:		address space
 * @ptep:	the PTE
 *
 * Context: under the lock of the PTE.
 */
void migrc_mm_defer(struct mm_struct *mm, const pte_t *ptep)
{
	s64 now;

	/* The PTE is cleared before the generation is read, see DOC. */
	smp_mb__after_atomic();
	now = migrc_generation();
	migrc_table(ptep)->pt_deferred = now;
	if (atomic64_read(&mm->migrc.deferred) != now)
		migrc_advance(&mm->migrc.deferred, now);
	/*
	 * The deferral is recorded, or read as recorded, before the list is
	 * checked. migrc_gather() does the same in the other order.
	 */
	smp_mb();
	if (!list_empty(&mm->migrc.node))
		return;
	spin_lock(&migrc_mms_lock);
	if (list_empty(&mm->migrc.node))
		list_add_tail(&mm->migrc.node, &migrc_mms);
	spin_unlock(&migrc_mms_lock);
}

/* See migrc_flush_tlb_mm(). */
void __migrc_flush_tlb_mm(struct mm_struct *mm)
{
	s64 start = atomic64_inc_return(&migrc_newest_gen);
	s64 checked = migrc_check_begin();

	flush_tlb_mm(mm);
	migrc_check_flushed(mm, checked);
	migrc_advance(&mm->migrc.flushed, start);
}

/* See migrc_flush_gather(). */
bool __migrc_flush_gather(struct mm_struct *mm, bool freed_tables)
{
	s64 start, checked;

	if (!migrc_flush_pending(mm))
		return false;
	start = atomic64_inc_return(&migrc_newest_gen);
	checked = migrc_check_begin();
	migrc_arch_flush(mm, freed_tables);
	migrc_check_flushed(mm, checked);
	migrc_advance(&mm->migrc.flushed, start);
	return true;
}

/* See migrc_flush_entries(). */
bool __migrc_flush_entries(void)
{
	return !migrc_should_fail(MIGRC_FAIL_ENTRY);
}

/* See migrc_table_needs_flush(). */
bool __migrc_table_needs_flush(const struct mm_struct *mm, const pte_t *ptep)
{
	return migrc_table_pending(mm, ptep) &&
	       !migrc_should_fail(MIGRC_FAIL_TABLE);
}

/* A flush of several mms in progress. */
struct migrc_round {
	struct arch_tlbflush_unmap_batch *batch;
	s64 start;	/* the generation when it began */
	s64 checked;	/* the checker's */
	unsigned int nr;	/* mms to flush */
};

static void migrc_round_begin(struct migrc_round *round)
{
	round->start = atomic64_inc_return(&migrc_newest_gen);
	round->checked = migrc_check_begin();
}

/*
 * Under migrc_mms_lock. @mm leaves the list if no flush is pending. Return true
 * if it is part of the round.
 */
static bool migrc_gather(struct mm_struct *mm, struct migrc_round *round)
{
	if (!migrc_flush_pending(mm)) {
		list_del_init(&mm->migrc.node);
		/* It leaves the list before deferred is read again. */
		smp_mb();
		if (!migrc_flush_pending(mm))
			return false;
		list_add_tail(&mm->migrc.node, &migrc_mms);
	}
	migrc_arch_gather(round->batch, mm);
	round->nr++;
	return true;
}

static void migrc_set_flushed(struct mm_struct *mm,
			      const struct migrc_round *round)
{
	migrc_check_flushed(mm, round->checked);
	migrc_advance(&mm->migrc.flushed, round->start);
}

/* Flush the mms that were gathered; the batch is empty afterwards. */
static void migrc_round_flush(struct migrc_round *round)
{
	migrc_count_paid(migrc_arch_batch_ipis(round->batch),
			 migrc_arch_broadcasts(round->nr));
	arch_tlbbatch_flush(round->batch);
}

/*
 * Gather @mm, then others from the head of the list, which move to its tail,
 * until the list is through or long enough for one hold of migrc_mms_lock. @mm
 * stays where it is: a flush of all mms that has begun must visit it.
 */
static void migrc_gather_some(struct mm_struct *mm, struct migrc_round *round)
{
	unsigned int nr;

	spin_lock(&migrc_mms_lock);
	if (migrc_gather(mm, round))
		mm->migrc.paid = round->start;
	for (nr = 0; nr < MIGRC_MMS_LOCKED && !list_empty(&migrc_mms); nr++) {
		struct mm_struct *next;

		next = list_first_entry(&migrc_mms, struct mm_struct,
					migrc.node);
		list_move_tail(&next->migrc.node, &migrc_mms);
		if (next == mm)
			continue;
		if (next->migrc.paid == round->start)
			break;
		if (migrc_gather(next, round))
			next->migrc.paid = round->start;
	}
	spin_unlock(&migrc_mms_lock);
}

/* Those that were gathered are at the tail, but others may have followed. */
static void migrc_set_some_flushed(struct migrc_round *round)
{
	unsigned int left = 2 * MIGRC_MMS_LOCKED;
	struct mm_struct *mm;

	spin_lock(&migrc_mms_lock);
	list_for_each_entry_reverse(mm, &migrc_mms, migrc.node) {
		if (mm->migrc.paid == round->start)
			migrc_set_flushed(mm, round);
		if (!--left)
			break;
	}
	spin_unlock(&migrc_mms_lock);
}

/* Under migrc_pay_lock, which also protects the batch. */
VISIBLE_IF_KUNIT void migrc_pay(struct mm_struct *mm)
{
	static struct arch_tlbflush_unmap_batch batch;
	struct migrc_round round = { .batch = &batch };

	migrc_round_begin(&round);
	migrc_gather_some(mm, &round);
	/* In lazy MMU mode Xen would do the flush later. */
	lazy_mmu_mode_pause();
	migrc_round_flush(&round);
	lazy_mmu_mode_resume();
	/*
	 * Not by its place in the list, which another flush may change. If that
	 * was of @mm, this one may have left it out.
	 */
	if (mm->migrc.paid == round.start)
		migrc_set_flushed(mm, &round);
	migrc_set_some_flushed(&round);
}

/* See migrc_flush(). */
void __migrc_flush(struct mm_struct *mm, const pte_t *ptep,
		   enum migrc_cause cause)
{
	if (!migrc_table_pending(mm, ptep) || migrc_should_fail(cause))
		return;
	spin_lock(&migrc_pay_lock);
	/* The task before this one may have flushed this mm, too. */
	if (migrc_table_pending(mm, ptep)) {
		migrc_pay(mm);
		migrc_count_flush(cause);
	}
	/* Nothing is deferred in this table meanwhile: its lock is held. */
	VM_WARN_ON_ONCE(migrc_table_pending(mm, ptep));
	spin_unlock(&migrc_pay_lock);
}

/*
 * Call @visit for each mm that is on the list now. The lock is dropped after
 * every MIGRC_MMS_LOCKED visits, because a waiter for it may hold a page table
 * lock. An mm that enters the list during the visit, or exits, need not be
 * visited.
 */
static void migrc_visit_mms(struct migrc_round *round,
			    void (*visit)(struct mm_struct *mm,
					  struct migrc_round *round))
{
	struct mm_struct *mm;
	unsigned int nr = 0;
	LIST_HEAD(todo);

	spin_lock(&migrc_mms_lock);
	list_splice_init(&migrc_mms, &todo);
	while (!list_empty(&todo)) {
		mm = list_first_entry(&todo, struct mm_struct, migrc.node);
		list_move_tail(&mm->migrc.node, &migrc_mms);
		visit(mm, round);
		if (++nr % MIGRC_MMS_LOCKED)
			continue;
		spin_unlock(&migrc_mms_lock);
		cond_resched();
		spin_lock(&migrc_mms_lock);
	}
	spin_unlock(&migrc_mms_lock);
}

static void migrc_visit_to_gather(struct mm_struct *mm,
				  struct migrc_round *round)
{
	if (migrc_gather(mm, round))
		mm->migrc.gathered = round->start;
}

/*
 * An mm is recognised by the generation, not by its address: a gathered mm may
 * have exited, and its memory be that of another.
 */
static void migrc_visit_to_set(struct mm_struct *mm, struct migrc_round *round)
{
	if (mm->migrc.gathered == round->start)
		migrc_set_flushed(mm, round);
}

/* Under migrc_flush_mutex, which also protects the batch. */
VISIBLE_IF_KUNIT void migrc_flush_all_mms(void)
{
	static struct arch_tlbflush_unmap_batch batch;
	struct migrc_round round = { .batch = &batch };

	migrc_round_begin(&round);
	migrc_visit_mms(&round, migrc_visit_to_gather);
	if (round.nr) {
		migrc_round_flush(&round);
		migrc_visit_mms(&round, migrc_visit_to_set);
	}
	migrc_advance(&migrc_flushed_gen, round.start);
}

/**
 * migrc_flush_mms() - flush all address spaces with a pending flush, together
 *
 * If all deferrals of a source folio are complete before this function begins,
 * no TLB maps the folio when it returns. A flush of all mms raises
 * migrc_flushed_gen to the generation at which it began, after the flush: when
 * file.c reads a generation greater than that of a deferral, the flush of the
 * deferral is over.
 *
 * Context: process context. May sleep.
 */
void migrc_flush_mms(void)
{
	s64 entered;

	/* The deferrals precede the read of the generation. */
	smp_mb();
	entered = migrc_generation();
	mutex_lock(&migrc_flush_mutex);
	/* A flush that began after this one was asked for serves it, too. */
	if (atomic64_read(&migrc_flushed_gen) <= entered)
		migrc_flush_all_mms();
	mutex_unlock(&migrc_flush_mutex);
}
