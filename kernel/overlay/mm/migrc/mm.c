// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: What an address space owes
 *
 * One clock for all: it ticks when a flush begins. An address space remembers the clock of
 * the newest PTE that was cleared without a flush (deferred), and that of the beginning of
 * its newest flush (flushed). It owes a flush while deferred >= flushed.
 *
 * Why that is enough. Migration clears the PTE, then reads the clock, c; a flush ticks the
 * clock to t, then flushes. If c < t, the PTE was cleared before the flush began, so no CPU
 * that has done its part of the flush can still have, or fetch, the old translation. If
 * c >= t, deferred >= flushed after that flush, and the debt stays. Both sides have a full
 * barrier between their two steps.
 *
 * The caller of migrc_flush() holds the lock of the page table that it is about to change.
 * A deferral in that table was noted under the same lock, so it is seen. One in another
 * table of the space may be missed, and need not be seen: that PTE is not about to change.
 *
 * A space is flushed whole. Where the kernel does that anyway, at the end of fork and for
 * reclaim's batches, it counts: migrc_flush_tlb_mm(). Flushes of parts of it are not counted
 * as payment, which errs on the safe side. CPUs that do not run the space when it
 * is flushed flush before they run it again, as after any flush.
 *
 * Life cycle: a space enters the list with its first deferral. A common flush takes those
 * off that owe nothing, and exit takes off its own, after the last user PTE is gone and
 * with it the last way to a deferral.
 *
 * Lock order: page table lock -> migrc_mms_lock.
 */

#include <linux/export.h>
#include <linux/jump_label.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/spinlock.h>

#include "arch.h"
#include "internal.h"

/* An IPI takes longer than to look at so many. */
#define MIGRC_MMS_LOCKED	64

DEFINE_STATIC_KEY_FALSE(migrc_used);
/* For get_write_access(), an inline function that modules call. */
EXPORT_SYMBOL(migrc_used);

/* Written by sysfs.c. While it is false nothing is deferred. */
bool migrc_enabled;

static atomic64_t migrc_newest_gen = ATOMIC64_INIT(1);
/* The generation at which the newest complete flush of all spaces began. */
atomic64_t migrc_flushed_gen = ATOMIC64_INIT(1);

static DEFINE_SPINLOCK(migrc_mms_lock);
static LIST_HEAD(migrc_mms);

/**
 * migrc_mm_init() - a new address space owes nothing
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
	/* Nobody can add it any more: there is no PTE left to defer. */
	spin_lock(&migrc_mms_lock);
	list_del_init(&mm->migrc.node);
	spin_unlock(&migrc_mms_lock);
}

/**
 * migrc_flush_pending() - has a flush of this space been left out, and not been made up for?
 * @mm: address space
 *
 * Context: any.
 * Return: true if so.
 */
bool migrc_flush_pending(const struct mm_struct *mm)
{
	if (migrc_should_fail(MIGRC_FAIL_GENERATION))
		return false;
	return atomic64_read(&mm->migrc.deferred) >= atomic64_read(&mm->migrc.flushed);
}

/**
 * migrc_generation() - what the clock shows
 *
 * Context: any. What the caller wants to date needs a full barrier before this.
 * Return: the clock, in ticks, from 1.
 */
s64 migrc_generation(void)
{
	return atomic64_read(&migrc_newest_gen);
}

/**
 * migrc_mm_defer() - a PTE of the space was cleared without a flush
 * @mm: address space
 *
 * Context: under the lock of the PTE.
 */
void migrc_mm_defer(struct mm_struct *mm)
{
	s64 now;

	smp_mb__after_atomic(); /* the PTE was cleared before the clock is read, see DOC */
	now = migrc_generation();
	if (atomic64_read(&mm->migrc.deferred) != now)
		migrc_advance(&mm->migrc.deferred, now);
	/*
	 * The debt is noted, or seen to be, before the list is looked at: migrc_gather()
	 * does the same the other way round.
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

/* A common flush under way. */
struct migrc_round {
	/* Under migrc_mms_lock; may take the space off the list. */
	void (*visit)(struct mm_struct *mm, struct migrc_round *round);
	struct arch_tlbflush_unmap_batch *batch;
	s64 start;	/* the clock when it began */
	s64 checked;	/* the checker's */
	bool any;	/* a space has to be flushed */
};

/*
 * Visit each space that is on the list now. The lock is dropped now and then: who waits for
 * it may hold a page table's. Spaces that come meanwhile, and those that exit, need not be
 * seen.
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
		smp_mb(); /* off the list before its debt is looked at again */
		if (!migrc_flush_pending(mm))
			return;
		list_add_tail(&mm->migrc.node, &migrc_mms);
	}
	migrc_arch_gather(round->batch, mm);
	mm->migrc.gathered = round->start;
	round->any = true;
}

/* Not by address: a space that was gathered may be gone, and its memory another. */
static void migrc_set_flushed(struct mm_struct *mm, struct migrc_round *round)
{
	if (mm->migrc.gathered != round->start)
		return;
	migrc_check_flushed(mm, round->checked);
	migrc_advance(&mm->migrc.flushed, round->start);
}

/**
 * migrc_flush_mms() - flush all address spaces that owe it, as one
 *
 * If all deferrals of a source folio are complete before this function begins,
 * no TLB maps the folio when it returns. At its end migrc_flushed_gen is raised
 * to the generation at which it began, after the flush: when file.c reads a
 * generation greater than that of a deferral, the flush of the deferral is over.
 *
 * Context: process context, one caller at a time. May sleep.
 */
void migrc_flush_mms(void)
{
	/* Serialised by the caller; too large for a stack. */
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
