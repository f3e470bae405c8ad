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
 *     still does: no other flush of the address space is pending. Then the
 *     source changes neither while it is copied nor after that. (fork
 *     write-protects the parent's PTEs long before it flushes them, and
 *     announces that by migrc_fork_begin(). A NUMA balancing scan removes
 *     access from PTEs, which hides their earlier permission; but if the VMA
 *     may not be written, they were not writable: migrc_numa_scan_begin().)
 *   - the previous condition holds for all PTEs of the folio. If one of them is
 *     writable, its owner could write the copy while others read the source.
 *     Then all address spaces are flushed (mixed), once for the batch, before
 *     anything is copied. That flush includes each deferral of the batch, so
 *     the rest of the batch defers nothing.
 *   - no other task can write the folio of a file, see file.c. KSM folios are
 *     never deferred, because KSM changes their mappings in its own ways.
 *   - the address space has no secondary TLBs.
 *   - the caller of migration does not need the source at once, as memory
 *     failure and hot-unplug do.
 *
 * A folio that is not migrated after all gets its old PTEs back. Then its
 * source is still its place, and a TLB entry for it is valid.
 * migrate_folio_unmap() alone decides whether a folio is migrated. A mapping
 * that the rmap walk passed by, because its PTE was being replaced, may
 * disappear at any moment, so migrc does not check it again.
 *
 * If migration restores the write permission of a PTE, no flush is needed: the
 * PTE had the permission when it was cleared, so its flush was not deferred.
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
#include <linux/sched.h>

#include "arch.h"
#include "internal.h"

/*
 * No batch: a task whose ->migrc_batch points here is in a NUMA balancing scan.
 */
struct migrc_batch migrc_numa_scan;

static bool migrc_reason_allowed(enum migrate_reason reason)
{
	return reason == MR_COMPACTION || reason == MR_SYSCALL ||
	       reason == MR_MEMPOLICY_MBIND || reason == MR_NUMA_MISPLACED ||
	       reason == MR_DEMOTION || reason == MR_DAMON;
}

/**
 * migrc_more_room() - reserve room in the quarantine for a batch
 * @batch:	the batch
 * @pages:	base pages that it needs
 *
 * Context: process context. May sleep.
 */
void migrc_more_room(struct migrc_batch *batch, long pages)
{
	long room = migrc_reserve(pages);

	if (room < pages && migrc_quarantined()) {
		/* The migrating task does the flush. */
		__migrc_drain(MIGRC_FULL);
		room += migrc_reserve(pages - room);
	}
	batch->reserved += room;
	batch->budget += room;
	batch->lacking = 0;
}

/* See migrc_batch_begin(). */
void __migrc_batch_begin(struct migrc_batch *batch, struct list_head *from,
			 enum migrate_reason reason)
{
	long pages = MIGRC_BATCH_PAGES;

	*batch = (struct migrc_batch) {
		.begun = true,
		.outer = current->migrc_batch,
		.sources = LIST_HEAD_INIT(batch->sources),
	};
	current->migrc_batch = NULL;
	if (!READ_ONCE(migrc_enabled) || !migrc_reason_allowed(reason))
		return;
	if (migrc_paused()) {
		migrc_count(MIGRC_SKIPPED_PAUSED, 1);
		return;
	}
	/*
	 * A hinting fault migrates one folio. It must not drain the quarantine
	 * for room that it does not use.
	 */
	if (list_is_singular(from))
		pages = folio_nr_pages(lru_to_folio(from));
	migrc_more_room(batch, pages);
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
	if (current->migrc_batch == batch)
		migrc_count_batch(batch);
	current->migrc_batch = batch->outer;
	migrc_unreserve(batch->reserved - batch->nr_kept);
	if (batch->nr_kept)
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
	if (!folio_test_anon(src) && !migrc_file_eligible(src)) {
		migrc_count(MIGRC_SKIPPED_FILE, 1);
		return false;
	}
	if (batch->budget < folio_nr_pages(src)) {
		/* migrc_folio_over() reserves it, for the next folio. */
		batch->lacking = folio_nr_pages(src);
		migrc_count(MIGRC_SKIPPED_FULL, 1);
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
	if (unlikely(batch->lacking))
		migrc_more_room(batch, max(batch->lacking, MIGRC_BATCH_PAGES));
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
		batch->flushed = true;
		return 0;
	}
	batch->nr_ptes += ptes;
	return MIGRC_FOLIO_DEFERRED;
}

/* See migrc_folio_not_migrated(). TLB entries for the folio remain valid. */
void __migrc_folio_not_migrated(struct migrc_batch *batch)
{
	migrc_folio_over(batch);
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

/**
 * migrc_read_only() - check that no TLB entry permits writing by a read-only
 * PTE
 * @vma: VMA of the PTE
 *
 * If another flush of the address space is pending, a CPU may have a TLB entry
 * from a time when the PTE was writable. The exception is the pending flush of
 * a NUMA balancing scan, if the VMA may not be written. A scan holds mmap_lock
 * for reading. So no task is removing write permission from PTEs, a task that
 * did so before has flushed, and VMA flags that forbid writing did so then. If
 * the scan ends between the two reads, it has flushed this PTE, too.
 *
 * Context: under the PTE's lock.
 * Return: true if no CPU can write by an earlier state of the PTE.
 */
bool migrc_read_only(const struct vm_area_struct *vma)
{
	struct mm_struct *mm = vma->vm_mm;

	if (READ_ONCE(mm->migrc.forking))
		return migrc_should_fail(MIGRC_FAIL_FORK) &&
		       migrc_check_pending();
	if (mm_tlb_flush_pending(mm) &&
	    ((vma->vm_flags & VM_WRITE) || !atomic_read(&mm->migrc.scans)))
		return migrc_should_fail(MIGRC_FAIL_PENDING) &&
		       migrc_check_pending();
	return true;
}

/* See migrc_numa_scan_begin(). */
void __migrc_numa_scan_begin(const struct vm_area_struct *vma)
{
	if (!(vma->vm_flags & VM_WRITE))
		current->migrc_batch = &migrc_numa_scan;
}

/* See migrc_flush_unmap(). */
void __migrc_flush_unmap(struct mm_struct *mm)
{
	if (current->migrc_batch == &migrc_numa_scan)
		return;
	__migrc_flush(mm, MIGRC_UNMAP);
	migrc_check_assert_flushed(mm, MIGRC_UNMAP);
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
	else if (!batch->folio_ptes && !migrc_eligible(batch, src))
		batch->seen |= MIGRC_SEEN_REFUSED;
	else if (!migrc_read_only(vma) || mm_has_notifiers(mm))
		batch->seen |= MIGRC_SEEN_WRITABLE;
	else
		goto defer;
	return false;
defer:
	/* Several folios of a run may be unmapped at once, so count it now. */
	if (!batch->folio_ptes)
		batch->budget -= folio_nr_pages(src);
	return true;
}

/**
 * migrc_defer_pte() - record a PTE that was cleared without a flush
 * @mm:		address space
 * @addr:	address that it maps
 * @pte:	its value before
 *
 * Context: under the PTE's lock, after migrc_try_defer_pte().
 */
void migrc_defer_pte(struct mm_struct *mm, unsigned long addr, pte_t pte)
{
	struct migrc_batch *batch = current->migrc_batch;

	/*
	 * The checker records it first, so each deferral with a pending flush
	 * in the checker also has one in mm.c.
	 */
	migrc_check_deferred(mm, addr, pte);
	migrc_mm_defer(mm);
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

	/* migrc_batch_flush() has flushed the deferrals of a mixed batch. */
	if (batch->mixed || migrc_should_fail(MIGRC_FAIL_QUARANTINE))
		return false;
	list_add_tail(&src->lru, &batch->sources);
	batch->nr_kept += folio_nr_pages(src);
	batch->nr_folios++;
	return true;
}
