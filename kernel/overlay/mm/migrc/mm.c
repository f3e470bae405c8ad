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
 * The caller of migrc_flush() holds the lock of the page table that it is about
 * to change. A deferral in that table was recorded under the same lock, so the
 * caller sees it. The caller may miss a deferral in another table of the mm,
 * and need not see it, because that PTE is not about to change.
 *
 * A flush is always of the whole mm. If the kernel flushes a whole mm by
 * itself, at the end of fork and for the batches of reclaim,
 * migrc_flush_tlb_mm() records that flush. Flushes of a part of an mm are not
 * recorded, which is on the safe side. A CPU that does not run the mm when it
 * is flushed flushes before it runs the mm again, as after any flush.
 *
 * Life cycle:
 *
 *   1. The first deferral adds the mm to the list.
 *   2. migrc_flush_mms() removes each mm without a pending flush.
 *   3. __migrc_mm_exit() removes the mm, after its last user PTE is gone and
 *      therefore no deferral can follow.
 *
 * Locking: migrc_mms_lock protects the list, and the gathered field of each mm
 * in it. Page table lock -> migrc_mms_lock.
 */

#include <linux/export.h>
#include <linux/jump_label.h>
#include <linux/list.h>
#include <linux/mm.h>
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
 * @mm: address space
 *
 * Context: under the lock of the PTE.
 */
void migrc_mm_defer(struct mm_struct *mm)
{
	s64 now;

	/* The PTE is cleared before the generation is read, see DOC. */
	smp_mb__after_atomic();
	now = migrc_generation();
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

/* See migrc_flush(). */
void __migrc_flush(struct mm_struct *mm, enum migrc_cause cause)
{
	s64 start, checked;

	if (!migrc_flush_pending(mm) || migrc_should_fail(cause))
		return;
	start = atomic64_inc_return(&migrc_newest_gen);
	checked = migrc_check_begin();
	migrc_arch_flush(mm);
	migrc_check_flushed(mm, checked);
	migrc_advance(&mm->migrc.flushed, start);
	migrc_count_flush(cause);
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

/* A flush of all mms in progress. */
struct migrc_round {
	/* Called under migrc_mms_lock; may remove @mm from the list. */
	void (*visit)(struct mm_struct *mm, struct migrc_round *round);
	struct arch_tlbflush_unmap_batch *batch;
	s64 start;	/* the generation when it began */
	s64 checked;	/* the checker's */
	bool any;	/* an mm has to be flushed */
};

/*
 * Visit each mm that is on the list now. The lock is dropped after every
 * MIGRC_MMS_LOCKED visits, because a waiter for it may hold a page table lock.
 * An mm that enters the list during the visit, or exits, need not be visited.
 */
static void migrc_visit_mms(struct migrc_round *round)
{
	struct mm_struct *mm;
	unsigned int nr = 0;
	LIST_HEAD(todo);

	spin_lock(&migrc_mms_lock);
	list_splice_init(&migrc_mms, &todo);
	while (!list_empty(&todo)) {
		mm = list_first_entry(&todo, struct mm_struct, migrc.node);
		list_move_tail(&mm->migrc.node, &migrc_mms);
		round->visit(mm, round);
		if (++nr % MIGRC_MMS_LOCKED)
			continue;
		spin_unlock(&migrc_mms_lock);
		cond_resched();
		spin_lock(&migrc_mms_lock);
	}
	spin_unlock(&migrc_mms_lock);
}

static void migrc_gather(struct mm_struct *mm, struct migrc_round *round)
{
	if (!migrc_flush_pending(mm)) {
		list_del_init(&mm->migrc.node);
		/* It leaves the list before deferred is read again. */
		smp_mb();
		if (!migrc_flush_pending(mm))
			return;
		list_add_tail(&mm->migrc.node, &migrc_mms);
	}
	migrc_arch_gather(round->batch, mm);
	mm->migrc.gathered = round->start;
	round->any = true;
}

/*
 * An mm is recognised by the generation, not by its address: a gathered mm may
 * have exited, and its memory be that of another.
 */
static void migrc_set_flushed(struct mm_struct *mm, struct migrc_round *round)
{
	if (mm->migrc.gathered != round->start)
		return;
	migrc_check_flushed(mm, round->checked);
	migrc_advance(&mm->migrc.flushed, round->start);
}

/**
 * migrc_flush_mms() - flush all address spaces with a pending flush, together
 *
 * If all deferrals of a source folio are complete before this function begins,
 * no TLB maps the folio when it returns. At its end migrc_flushed_gen is raised
 * to the generation at which it began, after the flush: when file.c reads a
 * generation greater than that of a deferral, the flush of the deferral is
 * over.
 *
 * Context: process context, one caller at a time. May sleep.
 */
void migrc_flush_mms(void)
{
	/* The caller serialises; the batch is too large for the stack. */
	static struct arch_tlbflush_unmap_batch batch;
	struct migrc_round round = { .visit = migrc_gather, .batch = &batch };

	round.start = atomic64_inc_return(&migrc_newest_gen);
	round.checked = migrc_check_begin();
	migrc_visit_mms(&round);
	if (round.any) {
		arch_tlbbatch_flush(&batch);
		round.visit = migrc_set_flushed;
		migrc_visit_mms(&round);
	}
	migrc_advance(&migrc_flushed_gen, round.start);
}
