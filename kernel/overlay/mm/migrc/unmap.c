// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Deferred flushes
 *
 * Migration of a batch unmaps all its folios, flushes once, copies and maps them again.
 * Without the flush CPUs go on reading the source. That is as good as reading the copy while
 * neither can be written. A flush is left out only if
 *
 *   - the PTE gives no write permission, and no CPU can have a TLB entry that still does:
 *     no other flush of the address space is pending. Then the source does not change while
 *     it is copied, nor after. (fork write-protects the parent's PTEs long before it
 *     flushes them, and says so: migrc_fork_begin(). A scan of NUMA balancing takes access
 *     from PTEs, which tells nothing of what they were; but where the area may not be
 *     written they were not writable: migrc_numa_scan_begin().)
 *   - that holds for all PTEs of the folio. If one turns out to be writable, its holder
 *     could write the copy while others read the source: the spaces are flushed (mixed),
 *     once for the batch, before anything is copied. As that flushes whatever the batch has
 *     deferred, nothing more is deferred in it.
 *   - a file's folio can be written by nobody else, see file.c. KSM's folios are left alone:
 *     they change their mappings in ways of their own.
 *   - the address space has no secondary TLBs.
 *   - who migrates does not need the source at once, as memory failure or hot-unplug do.
 *
 * A folio that is not moved after all gets its old PTEs back: its source is then no source,
 * and what TLBs have of it is right. Whether it is moved is decided once, by
 * migrate_folio_unmap(): a mapping that the walk has passed by, since its PTE was being
 * replaced, may go at any moment, so nobody here looks again.
 *
 * Where migration gives a PTE its write permission back nothing has to be flushed: it had
 * the permission when it was cleared, so it was not deferred.
 *
 * Life cycle: migrate_pages_batch() has a struct migrc_batch on its stack, which current
 * points to while the batch lasts. try_to_migrate() is told of it by TTU_DEFER_FLUSH, since
 * others call that, too, within a batch: allocating a destination may reclaim, which splits
 * folios, or compact, which is a batch within the batch. migrc_folio_unmapped() follows, or
 * migrc_folio_not_migrated(); when all folios are unmapped, migrc_batch_flush().
 *
 * Lock order: folio lock -> page table lock -> migrc_mms_lock.
 */

#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/mmu_notifier.h>
#include <linux/sched.h>

#include "arch.h"
#include "internal.h"

/* In a task's ->migrc it says that the task scans for NUMA balancing; there is no batch. */
struct migrc_batch migrc_numa_scan;

static bool migrc_reason_allowed(enum migrate_reason reason)
{
	return reason == MR_COMPACTION || reason == MR_SYSCALL ||
	       reason == MR_MEMPOLICY_MBIND || reason == MR_NUMA_MISPLACED ||
	       reason == MR_DEMOTION || reason == MR_DAMON;
}

/**
 * migrc_more_room() - take room in the quarantine for a batch
 * @batch:	the batch
 * @pages:	base pages that it needs
 *
 * Context: process context. May sleep.
 */
void migrc_more_room(struct migrc_batch *batch, long pages)
{
	long room = migrc_reserve(pages);

	if (room < pages && migrc_quarantined()) {
		/* Who migrates pays for the flush. */
		__migrc_drain(MIGRC_FULL);
		room += migrc_reserve(pages - room);
	}
	batch->reserved += room;
	batch->budget += room;
	batch->lacking = 0;
}

static bool migrc_wanted(enum migrate_reason reason)
{
	if (!READ_ONCE(migrc_enabled) || !migrc_reason_allowed(reason))
		return false;
	if (!migrc_paused())
		return true;
	migrc_count(MIGRC_SKIPPED_PAUSED, 1);
	return false;
}

/* Of a hinting fault, one folio, or it would drain for room that it has no use for. */
static long migrc_batch_pages(struct list_head *from)
{
	return list_is_singular(from) ? folio_nr_pages(lru_to_folio(from)) : MIGRC_BATCH_PAGES;
}

/* See migrc_batch_begin(). */
void __migrc_batch_begin(struct migrc_batch *batch, struct list_head *from,
			 enum migrate_reason reason)
{
	bool wanted = migrc_wanted(reason);

	INIT_LIST_HEAD(&batch->sources);
	batch->begun = true;
	batch->outer = current->migrc_batch;
	if (wanted)
		migrc_more_room(batch, migrc_batch_pages(from));
	current->migrc_batch = wanted ? batch : NULL;
}

static void migrc_count_batch(const struct migrc_batch *batch)
{
	if (batch->nr_writable)
		migrc_count(MIGRC_SKIPPED_WRITABLE, batch->nr_writable);
	if (!batch->nr_ptes)
		return;
	migrc_count(MIGRC_PTES, batch->nr_ptes);
	migrc_count(MIGRC_FOLIOS, batch->nr_folios);
	migrc_count(MIGRC_AVOIDED_BROADCASTS, migrc_arch_broadcasts(batch->nr_ptes));
	if (batch->flushed || batch->nr_writable)
		return;
	migrc_count(MIGRC_AVOIDED_FLUSHES, 1);
	migrc_count(MIGRC_AVOIDED_IPIS, batch->ipis);
}

/* See migrc_batch_end(). */
void __migrc_batch_end(struct migrc_batch *batch)
{
	/* It may have begun before migrc was first switched on. */
	if (!batch->begun)
		return;
	if (current->migrc_batch == batch)
		migrc_count_batch(batch);
	current->migrc_batch = batch->outer;
	migrc_unreserve(batch->reserved - batch->nr_kept);
	if (batch->nr_kept)
		migrc_quarantine(batch);
}

/* Under the lock of a PTE: it must not sleep. */
static bool migrc_eligible(struct migrc_batch *batch, struct folio *src)
{
	/* All that the batch defers is flushed anyway. */
	if (batch->mixed)
		return false;
	if (folio_test_ksm(src) || folio_test_hugetlb(src))
		return false;
	/* Its PTEs come to mean poison: nobody may go on reading it. */
	if (folio_contain_hwpoisoned_page(src))
		return false;
	if (!folio_test_anon(src) && !migrc_file_eligible(src)) {
		migrc_count(MIGRC_SKIPPED_FILE, 1);
		return false;
	}
	if (batch->budget < folio_nr_pages(src)) {
		/* For the next, that is. */
		batch->lacking = folio_nr_pages(src);
		migrc_count(MIGRC_SKIPPED_FULL, 1);
		return false;
	}
	return true;
}

/* What was seen of a folio; the next one begins. */
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
unsigned long __migrc_folio_unmapped(struct migrc_batch *batch, const struct folio *src)
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
	batch->budget -= folio_nr_pages(src);
	batch->nr_ptes += ptes;
	return MIGRC_FOLIO_DEFERRED;
}

/* See migrc_folio_not_migrated(). Its source is none, so what the TLBs have of it stays right. */
void __migrc_folio_not_migrated(struct migrc_batch *batch)
{
	migrc_folio_over(batch);
}

/*
 * Is the flush that is pending one of NUMA balancing's scans, of memory that may not be written?
 *
 * A scan holds mmap_lock for reading. So nobody is on the way of taking write permission from
 * PTEs, and whoever did has flushed; and flags of the area that forbid writing did so then. If
 * the scan ends between the two looks, it has flushed this PTE, too.
 */
static bool migrc_scanned(const struct vm_area_struct *vma)
{
	return !(vma->vm_flags & VM_WRITE) && atomic_read(&vma->vm_mm->migrc.scans);
}

/**
 * migrc_read_only() - can no CPU write by an earlier state of a PTE that is read-only now?
 * @vma: where the PTE is
 *
 * Context: under the PTE's lock.
 * Return: true if so.
 */
bool migrc_read_only(const struct vm_area_struct *vma)
{
	struct mm_struct *mm = vma->vm_mm;

	if (READ_ONCE(mm->migrc.forking))
		return migrc_should_fail(MIGRC_FAIL_FORK) && migrc_check_pending();
	if (mm_tlb_flush_pending(mm) && !migrc_scanned(vma))
		return migrc_should_fail(MIGRC_FAIL_PENDING) && migrc_check_pending();
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
bool __migrc_try_defer_pte(struct folio *src, struct vm_area_struct *vma, pte_t pte)
{
	struct migrc_batch *batch = current->migrc_batch;
	struct mm_struct *mm = vma->vm_mm;

	if (!batch || (batch->seen & (MIGRC_SEEN_WRITABLE | MIGRC_SEEN_REFUSED)))
		return false;
	/* A hinting PTE is in no TLB; there is nothing to defer. */
	if (pte_protnone(pte) && !mm_tlb_flush_pending(mm))
		batch->seen |= MIGRC_SEEN_HINTING;
	else if (pte_write(pte))
		batch->seen |= MIGRC_SEEN_WRITABLE;
	else if (!batch->folio_ptes && !migrc_eligible(batch, src))
		batch->seen |= MIGRC_SEEN_REFUSED;
	else if (!migrc_read_only(vma) || mm_has_notifiers(mm))
		batch->seen |= MIGRC_SEEN_WRITABLE;
	else
		return true;
	return false;
}

/**
 * migrc_defer_pte() - a PTE was cleared without a flush
 * @mm:		address space
 * @addr:	address that it maps
 * @pte:	what it was
 *
 * Context: under the PTE's lock, after migrc_try_defer_pte().
 */
void migrc_defer_pte(struct mm_struct *mm, unsigned long addr, pte_t pte)
{
	struct migrc_batch *batch = current->migrc_batch;

	/* The checker dates it first: what it takes for owed is owed then. */
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

	/* What a mixed batch deferred has been flushed by migrc_batch_flush(). */
	if (batch->mixed || migrc_should_fail(MIGRC_FAIL_QUARANTINE))
		return false;
	list_add_tail(&src->lru, &batch->sources);
	batch->nr_kept += folio_nr_pages(src);
	batch->nr_folios++;
	return true;
}
