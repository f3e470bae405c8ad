/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LINUX_MIGRC_H
#define _LINUX_MIGRC_H

#include <linux/bits.h>
#include <linux/migrate_mode.h>
#include <linux/migrc_check.h>
#include <linux/migrc_file.h>
#include <linux/mm.h>
#include <linux/rmap.h>
#include <linux/sched.h>

/**
 * enum migrc_cause - why a deferred flush is done
 * @MIGRC_WRITE_FAULT:	a write fault makes a PTE writable
 * @MIGRC_SWAP_FAULT:	a fault maps a page of the swap cache writable
 * @MIGRC_UNMAP:	PTEs are zapped, moved or given another protection
 * @MIGRC_GUP:		the kernel is about to write through a read-only PTE
 * @MIGRC_MIXED:	a folio turned out not to be mapped read-only by all
 * @MIGRC_FILE:		a file is opened for writing
 * @MIGRC_FULL:		the quarantine is full
 * @MIGRC_AGE:		the quarantine is old
 * @MIGRC_PRESSURE:	memory is short
 * @MIGRC_COMPACTION:	compaction has emptied a block
 * @MIGRC_DRAIN:	somebody wants all free pages in the buddy allocator
 * @MIGRC_FAILURE:	a page of memory has failed
 * @MIGRC_OFF:		migrc was switched off
 * @MIGRC_NR_CAUSES:	their number
 *
 * The first four are about one address space, the others about all.
 */
enum migrc_cause {
	MIGRC_WRITE_FAULT,
	MIGRC_SWAP_FAULT,
	MIGRC_UNMAP,
	MIGRC_GUP,
	MIGRC_MIXED,
	MIGRC_FILE,
	MIGRC_FULL,
	MIGRC_AGE,
	MIGRC_PRESSURE,
	MIGRC_COMPACTION,
	MIGRC_DRAIN,
	MIGRC_FAILURE,
	MIGRC_OFF,
	MIGRC_NR_CAUSES,
};

/**
 * enum migrc_seen - what the PTEs of a folio were
 * @MIGRC_SEEN_DEFERRED: cleared without a flush
 * @MIGRC_SEEN_WRITABLE: writable, or about to be flushed because they were
 * @MIGRC_SEEN_REFUSED:	read-only, but of a folio that is not deferred
 * @MIGRC_SEEN_HINTING:	in no TLB
 *
 * Once the second or third is seen, all PTEs that follow are flushed as without migrc.
 */
enum migrc_seen {
	MIGRC_SEEN_DEFERRED = BIT(0),
	MIGRC_SEEN_WRITABLE = BIT(1),
	MIGRC_SEEN_REFUSED = BIT(2),
	MIGRC_SEEN_HINTING = BIT(3),
};

/**
 * struct migrc_batch - one batch of migrate_pages(), zero on its stack at first
 * @outer:	the batch within whose allocations this one runs, or NULL
 * @sources:	source folios that wait for their flush
 * @nr_kept:	their base pages
 * @nr_folios:	their number
 * @budget:	base pages that the quarantine still has room for
 * @reserved:	base pages that were taken from the quarantine's bound for this batch
 * @nr_ptes:	PTEs whose flush was left out, of the whole batch
 * @nr_writable: mapped folios of which not all PTEs were read-only, or that had none
 * @seen:	&enum migrc_seen of the folio that is being unmapped
 * @folio_ptes:	PTEs of it whose flush was left out
 * @lacking:	base pages of a folio that there was no room for
 * @ipis:	most CPUs that a flush for one of the address spaces would interrupt
 * @mm:		the last address space seen, to count @ipis once; never dereferenced
 * @begun:	migrc was there when the batch began
 * @flushed:	a folio of the batch was flushed as without migrc
 * @mixed:	a folio of it was deferred in part; migrc_batch_flush() makes up for that
 */
struct migrc_batch {
#ifdef CONFIG_MIGRC
	struct migrc_batch *outer;
	struct list_head sources;
	unsigned long nr_kept;
	unsigned long nr_folios;
	long budget;
	long reserved;
	unsigned long nr_ptes;
	unsigned long nr_writable;
	long lacking;
	unsigned int seen;
	unsigned int folio_ptes;
	bool begun;
	bool flushed;
	bool mixed;
	unsigned int ipis;
	const struct mm_struct *mm;
#endif
};

#ifdef CONFIG_MIGRC

#include <asm/tlbflush.h>

/*
 * Bit of the destination's migrate_info, beside mm/migrate.c's own and FERRY_FOLIO_COPIED:
 * the flush of the source was deferred. The fourth low bit of an anon_vma pointer, hence
 * the alignment of struct anon_vma.
 */
#define MIGRC_FOLIO_DEFERRED	BIT(3)

void migrc_mm_init(struct mm_struct *mm);
void __migrc_mm_exit(struct mm_struct *mm);
void __migrc_flush(struct mm_struct *mm, enum migrc_cause cause);
void __migrc_drain(enum migrc_cause cause);

void __migrc_balance(void);
unsigned long __migrc_reclaim(void);

void __migrc_batch_begin(struct migrc_batch *batch, struct list_head *from,
			 enum migrate_reason reason);
void __migrc_batch_end(struct migrc_batch *batch);
void migrc_more_room(struct migrc_batch *batch, long pages);
unsigned long __migrc_folio_unmapped(struct migrc_batch *batch, const struct folio *src);
void __migrc_folio_not_migrated(struct migrc_batch *batch);
bool __migrc_try_defer_pte(struct folio *src, struct vm_area_struct *vma, pte_t pte);
void migrc_defer_pte(struct mm_struct *mm, unsigned long addr, pte_t pte);
bool __migrc_quarantine_folio(struct folio *src);
void __migrc_numa_scan_begin(const struct vm_area_struct *vma);
void __migrc_flush_unmap(struct mm_struct *mm);
void __migrc_flush_tlb_mm(struct mm_struct *mm);

/**
 * migrc_mm_exit() - an address space has no user PTEs any more
 * @mm: the address space, its TLB entries flushed or unreachable
 *
 * Context: process context.
 */
static inline void migrc_mm_exit(struct mm_struct *mm)
{
	if (static_branch_unlikely(&migrc_used))
		__migrc_mm_exit(mm);
}

/**
 * migrc_flush() - do what migrc left out for an address space, now
 * @mm:		the address space
 * @cause:	what is about to happen to it
 *
 * To be called before anybody can see that a PTE of @mm, or the page behind it, has changed.
 * Does nothing when no flush is owed.
 *
 * Context: any with interrupts on; under the page table lock of the PTE in question, so
 * that its own deferral is visible.
 */
static inline void migrc_flush(struct mm_struct *mm, enum migrc_cause cause)
{
	if (static_branch_unlikely(&migrc_used)) {
		__migrc_flush(mm, cause);
		/* Of all others the PTE tells. */
		if (cause == MIGRC_GUP)
			migrc_check_assert_flushed(mm, cause);
	}
}

/**
 * migrc_drain() - do what migrc left out for all, and free what waits for it
 * @cause: why
 *
 * Context: process context. May sleep; takes no lock that reclaim holds.
 */
static inline void migrc_drain(enum migrc_cause cause)
{
	if (static_branch_unlikely(&migrc_used))
		__migrc_drain(cause);
}

/**
 * migrc_balance() - kswapd is about to look whether its node has enough
 *
 * Context: as for migrc_drain().
 */
static inline void migrc_balance(void)
{
	if (static_branch_unlikely(&migrc_used))
		__migrc_balance();
}

/**
 * migrc_reclaim() - reclaim has found nothing: give up what waits for its flush
 *
 * Context: as for migrc_drain().
 * Return: base pages that were freed.
 */
static inline unsigned long migrc_reclaim(void)
{
	return static_branch_unlikely(&migrc_used) ? __migrc_reclaim() : 0;
}

/**
 * migrc_batch_begin() - a batch of migrate_pages() begins
 * @batch:	the batch, zero
 * @from:	its folios
 * @reason:	why they migrate
 *
 * Context: process context. May sleep.
 */
static inline void migrc_batch_begin(struct migrc_batch *batch, struct list_head *from,
				     enum migrate_reason reason)
{
	if (static_branch_unlikely(&migrc_used))
		__migrc_batch_begin(batch, from, reason);
}

/**
 * migrc_batch_end() - all folios of the batch have moved, or are back
 * @batch: as given to migrc_batch_begin()
 *
 * Context: process context. May sleep.
 */
static inline void migrc_batch_end(struct migrc_batch *batch)
{
	if (static_branch_unlikely(&migrc_used))
		__migrc_batch_end(batch);
}

/**
 * migrc_folio_unmapped() - a folio of the batch has no PTE any more, and will be moved
 * @batch:	the batch
 * @src:	the folio, locked
 * @was_mapped:	it was unmapped with TTU_DEFER_FLUSH
 *
 * Context: process context. May sleep.
 * Return: MIGRC_FOLIO_DEFERRED if TLBs may still know @src when it is moved, 0 if not.
 */
static inline unsigned long migrc_folio_unmapped(struct migrc_batch *batch,
						 const struct folio *src, bool was_mapped)
{
	if (!static_branch_unlikely(&migrc_used) || !was_mapped)
		return 0;
	if (batch->seen)
		return __migrc_folio_unmapped(batch, src);
	batch->nr_writable++;
	return 0;
}

/**
 * migrc_folio_not_migrated() - a folio of the batch could not be unmapped wholly: it is not moved
 * @batch: the batch
 *
 * Context: process context. May sleep.
 */
static inline void migrc_folio_not_migrated(struct migrc_batch *batch)
{
	if (static_branch_unlikely(&migrc_used) && batch->seen)
		__migrc_folio_not_migrated(batch);
}

/**
 * migrc_batch_flush() - all folios of the batch are unmapped, and none is copied yet
 * @batch: the batch
 *
 * Context: process context, the folios locked. May sleep.
 */
static inline void migrc_batch_flush(struct migrc_batch *batch)
{
	if (batch->mixed)
		__migrc_drain(MIGRC_MIXED);
}

/**
 * migrc_try_defer_pte() - may the flush of this PTE wait?
 * @src:	folio that it maps
 * @vma:	where the PTE is
 * @flags:	what try_to_migrate() was given
 * @pte:	the PTE, present
 *
 * What is written is decided here: memory that gains nothing shall cost nothing. Of a folio
 * of one anonymous page that can be written there is no other PTE, so nobody need remember.
 *
 * Context: under the PTE's lock, which the caller keeps until migrc_defer_pte().
 * Return: true if the caller is to clear the PTE without a flush, and to call
 * migrc_defer_pte() then.
 */
static inline bool migrc_try_defer_pte(struct folio *src, struct vm_area_struct *vma,
				enum ttu_flags flags, pte_t pte)
{
	if (!static_branch_unlikely(&migrc_used))
		return false;
	if (pte_write(pte) && folio_test_anon(src) && !folio_test_large(src))
		return false;
	return (flags & TTU_DEFER_FLUSH) && __migrc_try_defer_pte(src, vma, pte);
}

/**
 * migrc_quarantine_folio() - keep a migrated source until its flush
 * @src:	source folio, referenced by the caller alone
 * @state:	state bits that were recorded with its destination
 *
 * Context: process context.
 * Return: true if the caller's reference was taken over; false if the caller is to drop it.
 */
static inline bool migrc_quarantine_folio(struct folio *src, unsigned long state)
{
	return (state & MIGRC_FOLIO_DEFERRED) && __migrc_quarantine_folio(src);
}

/**
 * migrc_fork_begin() - fork is about to write-protect PTEs that it flushes much later
 * @mm: the parent's address space, mmap_lock held for writing
 *
 * Until migrc_fork_end() a PTE without write permission proves nothing: a CPU may still have
 * a TLB entry that permits writing. Whoever sees the PTE write-protected, under its lock,
 * sees the mark, because it was set before that lock was taken to write-protect it.
 *
 * Context: process context.
 */
static inline void migrc_fork_begin(struct mm_struct *mm)
{
	WRITE_ONCE(mm->migrc.forking, true);
}

/**
 * migrc_fork_end() - and has flushed them
 * @mm: as given to migrc_fork_begin()
 *
 * Context: process context.
 */
static inline void migrc_fork_end(struct mm_struct *mm)
{
	WRITE_ONCE(mm->migrc.forking, false);
}

extern struct migrc_batch migrc_numa_scan;

/**
 * migrc_numa_scan_begin() - NUMA balancing is about to take access from PTEs
 * @vma: where they are; mmap_lock held, which keeps others from taking write permission
 *
 * Until migrc_numa_scan_end() these PTEs have a flush pending that says nothing about memory that
 * cannot be written anyway. There the scan itself owes nothing: it takes access away, a
 * hinting fault gives it back, and until then a CPU that reads an old place reads nothing
 * wrong. Elsewhere that fault may permit writing, too, so the scan pays as others do.
 *
 * Context: process context.
 */
static inline void migrc_numa_scan_begin(const struct vm_area_struct *vma)
{
	mmap_assert_locked(vma->vm_mm);
	atomic_inc(&vma->vm_mm->migrc.scans);
	if (static_branch_unlikely(&migrc_used))
		__migrc_numa_scan_begin(vma);
}

/**
 * migrc_numa_scan_end() - and has flushed them
 * @vma: as given to migrc_numa_scan_begin()
 *
 * Context: process context.
 */
static inline void migrc_numa_scan_end(const struct vm_area_struct *vma)
{
	if (current->migrc_batch == &migrc_numa_scan)
		current->migrc_batch = NULL;
	atomic_dec(&vma->vm_mm->migrc.scans);
}

/**
 * migrc_flush_unmap() - migrc_flush() for whoever is about to change PTEs
 * @mm: the address space
 *
 * But for a scan of memory that may not be written, see migrc_numa_scan_begin().
 *
 * Context: as for migrc_flush().
 */
static inline void migrc_flush_unmap(struct mm_struct *mm)
{
	if (static_branch_unlikely(&migrc_used))
		__migrc_flush_unmap(mm);
}

/**
 * migrc_flush_tlb_mm() - flush_tlb_mm(), which pays what migrc left out, too
 * @mm: the address space
 *
 * Context: as for flush_tlb_mm().
 */
static inline void migrc_flush_tlb_mm(struct mm_struct *mm)
{
	if (static_branch_unlikely(&migrc_used))
		__migrc_flush_tlb_mm(mm);
	else
		flush_tlb_mm(mm);
}

#else /* !CONFIG_MIGRC */

#define MIGRC_FOLIO_DEFERRED	0

static inline void migrc_mm_init(struct mm_struct *mm) { }
static inline void migrc_mm_exit(struct mm_struct *mm) { }
static inline void migrc_flush(struct mm_struct *mm, enum migrc_cause cause) { }
static inline void migrc_drain(enum migrc_cause cause) { }
static inline void migrc_balance(void) { }
static inline unsigned long migrc_reclaim(void) { return 0; }
static inline void migrc_batch_begin(struct migrc_batch *batch, struct list_head *from,
				     enum migrate_reason reason) { }
static inline void migrc_batch_end(struct migrc_batch *batch) { }
static inline unsigned long migrc_folio_unmapped(struct migrc_batch *batch,
						 const struct folio *src, bool was_mapped)
{
	return 0;
}

static inline void migrc_folio_not_migrated(struct migrc_batch *batch) { }
static inline void migrc_batch_flush(struct migrc_batch *batch) { }

static inline bool migrc_try_defer_pte(struct folio *src, struct vm_area_struct *vma,
				enum ttu_flags flags, pte_t pte)
{
	return false;
}

static inline void migrc_defer_pte(struct mm_struct *mm, unsigned long addr,
				  pte_t pte) { }
static inline bool migrc_quarantine_folio(struct folio *src, unsigned long state) { return false; }
static inline void migrc_fork_begin(struct mm_struct *mm) { }
static inline void migrc_fork_end(struct mm_struct *mm) { }
static inline void migrc_numa_scan_begin(const struct vm_area_struct *vma) { }
static inline void migrc_numa_scan_end(const struct vm_area_struct *vma) { }
static inline void migrc_flush_unmap(struct mm_struct *mm) { }

/* No function: without an MMU there may be no flush_tlb_mm(). */
#define migrc_flush_tlb_mm(mm)	flush_tlb_mm(mm)

#endif /* CONFIG_MIGRC */
#endif /* _LINUX_MIGRC_H */
