// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Deferred flushes
 *
 * Migration of a batch unmaps all its folios, flushes once, copies the folios
 * and maps the copies. Without the flush CPUs continue to read the source. As
 * long as neither the source nor the copy can be written, both have the same
 * content. migrc defers a flush only if
 *
 *   - the PTE gives no write permission, and no CPU can have a TLB entry that
 *     still does. Then the source changes neither while it is copied nor after
 *     that. See migrc_read_only().
 *   - the previous condition holds for all PTEs of the folio. If one of them is
 *     writable, its owner could write the copy while others read the source.
 *     Then all address spaces are flushed (mixed), once for the batch, before
 *     anything is copied. That flush includes each deferral of the batch, so
 *     the rest of the batch defers nothing.
 *   - no other task can write the folio of a file, see file.c. KSM folios are
 *     never deferred, because KSM changes their mappings in its own ways.
 *   - the address space has no secondary TLBs.
 *   - the architecture permits another PTE before the flush, see arch.h.
 *   - the source is in no isolated pageblock, where a caller waits for it to be
 *     free. Compaction for less than a pageblock waits for each few pages, so
 *     it defers nothing; for more, it drains when it leaves a pageblock.
 *   - the caller of migration does not need the source at once, as memory
 *     failure and hot-unplug do.
 *
 * A folio that is not migrated after all gets its old PTEs back. Then its
 * source is still its place, and a TLB entry for it is valid. But an entry that
 * was zapped since then does not come back, and the mmu_gather that flushes for
 * it has no reference to the folio. So all address spaces are flushed while
 * migration has its own: at once if the folio was not unmapped, since it may be
 * found free in the next pass, and else at the end of the batch.
 * migrate_folio_unmap() alone decides whether a folio is migrated. A mapping
 * that the rmap walk passed by, because its PTE was being replaced, may
 * disappear at any moment, so migrc does not check it again.
 *
 * Until the flush, migration entries and then the copy's PTEs are in place.
 *
 *   - Before a PTE is given write permission, migrc_flush() does the flush. If
 *     migration restores the permission, no flush is needed: the PTE had it
 *     when it was cleared, so its flush was not deferred.
 *   - Code that removes or moves a PTE flushes its address anyway, before the
 *     copy is freed and before the caller relies on it. That flush also drops
 *     the translation of the source. But the kernel flushes nothing for a
 *     migration entry, so migrc_flush_entries() tells it to.
 *   - mprotect() and userfaultfd flush the address of a PTE whose protection
 *     they change. They may find a migration entry, or a PTE that migration has
 *     mapped after the VMA was changed, and which needs no change. So they
 *     flush their range of each page table with a pending flush:
 *     migrc_table_needs_flush().
 *   - Other code that replaces the page of a PTE (copy on write, KSM, uprobes,
 *     collapse) flushes the address first.
 *
 * Life cycle:
 *
 *   1. migrate_pages_batch() has a struct migrc_batch on its stack, which
 *      current->migrc_batch points to during the batch.
 *   2. TTU_DEFER_FLUSH tells try_to_migrate() to use it. The flag is needed
 *      because other code calls try_to_migrate() within a batch, too: the
 *      allocation of a destination may reclaim, which splits folios, or
 *      compact, which is a batch within the batch.
 *   3. migrc_folio_unmapped() or migrc_folio_not_migrated() ends each folio.
 *   4. When all folios are unmapped, migrc_batch_flush() follows.
 *
 * Locking: folio lock -> page table lock -> migrc_mms_lock.
 */

#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/mmu_notifier.h>
#include <linux/page-isolation.h>
#include <linux/sched.h>
#include <linux/userfaultfd_k.h>

#include "../internal.h"
#include "arch.h"
#include "internal.h"

/* See migrc_compaction_waits(). */
static bool migrc_allowed(enum migrate_reason reason, unsigned long private)
{
	if (reason == MR_COMPACTION) {
		const struct compact_control *cc = (void *)private;

		return cc->order < 0 || migrc_compaction_waits(cc->order);
	}
	return reason == MR_SYSCALL || reason == MR_MEMPOLICY_MBIND ||
	       reason == MR_NUMA_MISPLACED || reason == MR_DEMOTION ||
	       reason == MR_DAMON;
}

/* See migrc_batch_begin(). */
void __migrc_batch_begin(struct migrc_batch *batch, unsigned long private,
			 enum migrate_reason reason)
{
	*batch = (struct migrc_batch) {
		.begun = true,
		.outer = current->migrc_batch,
		.sources = LIST_HEAD_INIT(batch->sources),
	};
	current->migrc_batch = NULL;
	if (!READ_ONCE(migrc_enabled) || !migrc_bound() ||
	    !migrc_allowed(reason, private))
		return;
	if (migrc_paused()) {
		migrc_count(MIGRC_SKIPPED_PAUSED, 1);
		return;
	}
	current->migrc_batch = batch;
}

static void migrc_count_batch(const struct migrc_batch *batch)
{
	if (batch->nr_writable)
		migrc_count(MIGRC_SKIPPED_WRITABLE, batch->nr_writable);
	if (!batch->nr_ptes)
		return;
	migrc_count(MIGRC_PTES, batch->nr_ptes);
	migrc_count(MIGRC_FOLIOS, batch->nr_folios);
	migrc_count(MIGRC_AVOIDED_BROADCASTS,
		    migrc_arch_broadcasts(batch->nr_ptes));
	if (batch->flushed || batch->nr_writable)
		return;
	migrc_count(MIGRC_AVOIDED_FLUSHES, 1);
	migrc_count(MIGRC_AVOIDED_IPIS, batch->ipis);
}

/* See migrc_batch_end(). */
void __migrc_batch_end(struct migrc_batch *batch)
{
	/* It may have begun before migrc was first enabled. */
	if (!batch->begun)
		return;
	/* A mixed batch was flushed after its last deferral. */
	if (batch->nr_deferred && !batch->mixed) {
		batch->flushed = true;
		__migrc_batch_flush();
	}
	if (current->migrc_batch == batch)
		migrc_count_batch(batch);
	current->migrc_batch = batch->outer;
	if (!list_empty(&batch->sources))
		migrc_quarantine(batch);
}

/* The caller holds the lock of a PTE, so this must not sleep. */
static bool migrc_eligible(struct migrc_batch *batch, struct folio *src)
{
	/* migrc_batch_flush() flushes each deferral of the batch. */
	if (batch->mixed)
		return false;
	if (folio_test_ksm(src) || folio_test_hugetlb(src))
		return false;
	/* Its PTEs become poison entries: no CPU may continue to read it. */
	if (folio_contain_hwpoisoned_page(src))
		return false;
	/* In quarantine it would be neither free nor movable. */
	if (is_migrate_isolate_page(&src->page))
		return false;
	if (!folio_test_anon(src) && !migrc_file_eligible(src)) {
		migrc_count(MIGRC_SKIPPED_FILE, 1);
		return false;
	}
	return true;
}

/* End a folio, begin the next one, and return the seen flags of the first. */
static unsigned int migrc_folio_over(struct migrc_batch *batch)
{
	unsigned int seen = batch->seen;

	batch->folio_ptes = 0;
	batch->seen = 0;
	batch->nr_writable += !!(seen & MIGRC_SEEN_WRITABLE);
	batch->flushed |= !!(seen & MIGRC_SEEN_REFUSED);
	return seen;
}

/* See migrc_folio_unmapped(). */
unsigned long __migrc_folio_unmapped(struct migrc_batch *batch,
				     const struct folio *src)
{
	unsigned int ptes = batch->folio_ptes, seen = migrc_folio_over(batch);

	if (!(seen & MIGRC_SEEN_DEFERRED))
		return 0;
	if ((seen & (MIGRC_SEEN_WRITABLE | MIGRC_SEEN_REFUSED)) ||
	    (!folio_test_anon(src) && !migrc_file_commit(src))) {
		batch->mixed = true;
		batch->unflushed = true;
		batch->flushed = true;
		return 0;
	}
	batch->nr_ptes += ptes;
	batch->nr_deferred++;
	return MIGRC_FOLIO_DEFERRED;
}

/* See migrc_folio_not_migrated(). */
void __migrc_folio_not_migrated(struct migrc_batch *batch)
{
	if (migrc_folio_over(batch) & MIGRC_SEEN_DEFERRED)
		__migrc_batch_flush();
}

/* See migrc_folio_resume(). */
void __migrc_folio_resume(unsigned long state)
{
	struct migrc_batch *batch = current->migrc_batch;

	if (!batch)
		return;
	batch->seen = state & MIGRC_SEEN_ALL;
	batch->folio_ptes = state / (MIGRC_SEEN_ALL + 1);
}

/* See migrc_folio_suspend(). */
unsigned long __migrc_folio_suspend(void)
{
	struct migrc_batch *batch = current->migrc_batch;
	unsigned long state;

	if (!batch)
		return 0;
	state = (unsigned long)batch->folio_ptes * (MIGRC_SEEN_ALL + 1) +
		batch->seen;
	batch->seen = 0;
	batch->folio_ptes = 0;
	return state;
}

/* See migrc_batch_flush(). It frees nothing: the folios are locked. */
void __migrc_batch_flush(void)
{
	if (migrc_should_fail(MIGRC_MIXED))
		return;
	migrc_flush_mms();
	migrc_count_flush(MIGRC_MIXED);
}

/**
 * migrc_read_only() - check that no TLB entry permits writing by a read-only
 * PTE
 * @src:	folio that the PTE maps
 * @vma:	VMA of the PTE
 *
 * A PTE of a file's folio is writable only in a shared mapping of a file that
 * is open for writing, and migrc_eligible() has refused such a folio.
 *
 * A PTE of anonymous memory may have been write-protected a moment ago. If
 * another flush of the address space is pending, a CPU may have a TLB entry
 * from a time when the PTE was writable. fork write-protects the parent's PTEs
 * long before it flushes them, and announces that by migrc_fork_begin(). The
 * exception is the pending flush of a NUMA balancing scan, if the VMA may not
 * be written. A scan holds mmap_lock for reading. So no task is removing write
 * permission from PTEs, a task that did so before has flushed, and VMA flags
 * that forbid writing did so then. If the scan ends between the two reads, it
 * has flushed this PTE, too.
 *
 * A PTE that userfaultfd protects from reads comes back inaccessible, so that
 * nothing would flush what TLBs have of it when it goes. Its VMA is refused.
 *
 * Context: under the PTE's lock.
 * Return: true if no CPU can write by an earlier state of the PTE.
 */
bool migrc_read_only(const struct folio *src, struct vm_area_struct *vma)
{
	struct mm_struct *mm = vma->vm_mm;

	if (!folio_test_anon(src))
		return true;
	if (userfaultfd_rwp(vma))
		return false;
	if (READ_ONCE(mm->migrc.forking))
		return migrc_should_fail(MIGRC_FAIL_FORK) &&
		       migrc_check_pending();
	if (mm_tlb_flush_pending(mm) &&
	    ((vma->vm_flags & VM_WRITE) || !atomic_read(&mm->migrc.scans)))
		return migrc_should_fail(MIGRC_FAIL_PENDING) &&
		       migrc_check_pending();
	return true;
}

/* See migrc_try_defer_pte(). */
bool __migrc_try_defer_pte(struct folio *src, struct vm_area_struct *vma,
			   pte_t pte)
{
	struct migrc_batch *batch = current->migrc_batch;
	struct mm_struct *mm = vma->vm_mm;

	if (!batch ||
	    (batch->seen & (MIGRC_SEEN_WRITABLE | MIGRC_SEEN_REFUSED)))
		return false;
	/* A hinting PTE is in no TLB, so it needs no flush. */
	if (pte_protnone(pte) && !mm_tlb_flush_pending(mm))
		batch->seen |= MIGRC_SEEN_HINTING;
	else if (pte_write(pte))
		batch->seen |= MIGRC_SEEN_WRITABLE;
	else if (!migrc_arch_may_defer(pte) ||
		 (!batch->folio_ptes && !migrc_eligible(batch, src)))
		batch->seen |= MIGRC_SEEN_REFUSED;
	else if (!migrc_read_only(src, vma) || mm_has_notifiers(mm))
		batch->seen |= MIGRC_SEEN_WRITABLE;
	else
		return true;
	return false;
}

/**
 * migrc_defer_pte() - record a PTE that was cleared without a flush
 * @mm:		address space
 * @addr:	address that it maps
 * @ptep:	the PTE
 * @pte:	its value before
 *
 * Context: under the PTE's lock, after migrc_try_defer_pte().
 */
void migrc_defer_pte(struct mm_struct *mm, unsigned long addr,
		     const pte_t *ptep, pte_t pte)
{
	struct migrc_batch *batch = current->migrc_batch;

	/*
	 * The checker records it first, so each deferral with a pending flush
	 * in the checker also has one in mm.c.
	 */
	migrc_check_deferred(mm, addr, pte);
	migrc_mm_defer(mm, ptep);
	batch->seen |= MIGRC_SEEN_DEFERRED;
	batch->folio_ptes++;
	if (batch->mm == mm)
		return;
	batch->mm = mm;
	batch->ipis = max(batch->ipis, migrc_arch_ipis(mm));
}

/* See migrc_quarantine_folio(). */
bool __migrc_quarantine_folio(struct folio *src)
{
	struct migrc_batch *batch = current->migrc_batch;

	VM_WARN_ON_ONCE(!batch->nr_deferred);
	batch->nr_deferred--;
	/* migrc_batch_flush() has flushed the deferrals of a mixed batch. */
	if (batch->mixed || migrc_should_fail(MIGRC_FAIL_QUARANTINE))
		return false;
	VM_WARN_ON_ONCE_FOLIO(folio_mapped(src), src);
	list_add_tail(&src->lru, &batch->sources);
	batch->nr_folios++;
	return true;
}
