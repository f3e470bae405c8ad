/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LINUX_MIGRC_H
#define _LINUX_MIGRC_H

#include <linux/bits.h>
#include <linux/migrate_mode.h>
#include <linux/migrc_check.h>
#include <linux/migrc_file.h>
#include <linux/migrc_tlb.h>
#include <linux/mm.h>
#include <linux/rmap.h>
#include <linux/sched.h>

/**
 * enum migrc_cause - cause of a deferred flush
 * @MIGRC_WRITE_FAULT:	a write fault makes a PTE writable
 * @MIGRC_SWAP_FAULT:	a fault maps a page of the swap cache writable
 * @MIGRC_PROTECT:	mprotect() or userfaultfd makes a PTE writable
 * @MIGRC_GUP:		the kernel is about to write through a read-only PTE
 * @MIGRC_MIXED:	not all PTEs of a folio were read-only, or it was not
 *			migrated
 * @MIGRC_FILE:		a file is opened for writing
 * @MIGRC_FULL:		the quarantine is full
 * @MIGRC_AGE:		the quarantine is old
 * @MIGRC_PRESSURE:	memory is short, or drain_all_pages() of all zones
 * @MIGRC_COMPACTION:	compaction has emptied a block
 * @MIGRC_DRAIN:	a caller needs all free pages in the buddy allocator
 * @MIGRC_FAILURE:	a page of memory has failed
 * @MIGRC_OFF:		migrc was disabled
 * @MIGRC_NR_CAUSES:	their number
 *
 * The first four do the pending flush of one page table, and others' with it;
 * the others do all pending flushes.
 */
enum migrc_cause {
	MIGRC_WRITE_FAULT,
	MIGRC_SWAP_FAULT,
	MIGRC_PROTECT,
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
 * enum migrc_seen - states of the PTEs of a folio before they were cleared
 * @MIGRC_SEEN_DEFERRED: cleared without a flush
 * @MIGRC_SEEN_WRITABLE: writable, or about to be flushed because they were
 * @MIGRC_SEEN_REFUSED:	read-only, but of a folio that is not deferred, or with
 *			a flush that the architecture needs
 * @MIGRC_SEEN_HINTING:	in no TLB
 * @MIGRC_SEEN_ALL:	mask of all
 *
 * After the second or third is seen, all later PTEs are flushed as without
 * migrc.
 */
enum migrc_seen {
	MIGRC_SEEN_DEFERRED = BIT(0),
	MIGRC_SEEN_WRITABLE = BIT(1),
	MIGRC_SEEN_REFUSED = BIT(2),
	MIGRC_SEEN_HINTING = BIT(3),
	MIGRC_SEEN_ALL = 15,
};

/**
 * struct migrc_batch - one batch of migrate_pages(), on its stack
 * @outer:	the batch within whose allocations this one runs, or NULL
 * @sources:	source folios for the quarantine
 * @nr_folios:	number of @sources
 * @nr_deferred: folios that were unmapped without a flush and have not moved
 * @nr_ptes:	PTEs of the batch whose flush was deferred
 * @nr_writable: mapped folios whose PTEs were not all read-only, or that had
 *		none
 * @seen:	&enum migrc_seen of the folio that is being unmapped
 * @folio_ptes:	PTEs of that folio whose flush was deferred
 * @ipis:	greatest number of CPUs that a flush of one of the mms would
 *		interrupt
 * @mm:		the last address space seen, to count @ipis once; never
 *		dereferenced
 * @begun:	migrc_batch_begin() initialised the batch
 * @flushed:	a folio of the batch was flushed as without migrc
 * @mixed:	a folio was deferred in part; no more are deferred
 * @unflushed:	migrc_batch_flush() must still flush such folios
 */
struct migrc_batch {
#ifdef CONFIG_MIGRC
	struct migrc_batch *outer;
	struct list_head sources;
	unsigned long nr_folios;
	unsigned long nr_deferred;
	unsigned long nr_ptes;
	unsigned long nr_writable;
	unsigned int seen;
	unsigned int folio_ptes;
	bool begun;
	bool flushed;
	bool mixed;
	bool unflushed;
	unsigned int ipis;
	const struct mm_struct *mm;
#endif
};

#ifdef CONFIG_MIGRC

#include <asm/tlbflush.h>

/*
 * Bit of the destination's migrate_info, beside mm/migrate.c's own bits and
 * FERRY_FOLIO_COPIED: the flush of the source was deferred. It is the fourth
 * low bit of an anon_vma pointer, so struct anon_vma is aligned to 16 bytes.
 */
#define MIGRC_FOLIO_DEFERRED	BIT(3)

void migrc_mm_init(struct mm_struct *mm);
void __migrc_mm_exit(struct mm_struct *mm);
bool __migrc_table_needs_flush(const struct mm_struct *mm, const pte_t *ptep);
void __migrc_flush(struct mm_struct *mm, const pte_t *ptep,
		   enum migrc_cause cause);
void __migrc_drain(enum migrc_cause cause);

void __migrc_balance(int nid);
unsigned long __migrc_reclaim(void);

void __migrc_batch_begin(struct migrc_batch *batch, unsigned long private,
			 enum migrate_reason reason);
void __migrc_batch_end(struct migrc_batch *batch);
void __migrc_batch_flush(void);
unsigned long __migrc_folio_unmapped(struct migrc_batch *batch,
				     const struct folio *src);
void __migrc_folio_not_migrated(struct migrc_batch *batch);
void __migrc_folio_resume(unsigned long state);
unsigned long __migrc_folio_suspend(void);
bool __migrc_try_defer_pte(struct folio *src, struct vm_area_struct *vma,
			   pte_t pte);
void migrc_defer_pte(struct mm_struct *mm, unsigned long addr,
		     const pte_t *ptep, pte_t pte);
bool __migrc_quarantine_folio(struct folio *src);
void __migrc_flush_tlb_mm(struct mm_struct *mm);

/**
 * migrc_mm_exit() - end deferrals of an address space without user PTEs
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
 * migrc_flush() - do the pending flush of a page table
 * @mm:		its address space
 * @ptep:	the PTE that is about to be made writable, or through which the
 *		kernel is about to write
 * @cause:	the change that is about to be made
 *
 * The caller calls this before the change becomes visible. If no PTE of the
 * page table waits for its flush, this does nothing.
 *
 * Context: any with interrupts on; under the lock of the page table, so that
 * the deferral of this PTE is visible.
 */
static inline void migrc_flush(struct mm_struct *mm, const pte_t *ptep,
			       enum migrc_cause cause)
{
	if (static_branch_unlikely(&migrc_used)) {
		__migrc_flush(mm, ptep, cause);
		/* For all other causes the change of the PTE is checked. */
		if (cause == MIGRC_GUP)
			migrc_check_assert_flushed(mm, cause);
	}
}

/**
 * migrc_table_needs_flush() - check whether mprotect() is to flush its range of
 * a page table
 * @mm:		address space
 * @ptep:	a PTE of the table
 *
 * mprotect() changes the VMA before it changes PTEs, and flushes a PTE only if
 * the PTE's protection changes. If migration maps the copy between the two, the
 * PTE has the new protection already. But a CPU may have a TLB entry with the
 * old one, if a flush of the table is pending. It would continue to access
 * memory that is now forbidden. On arm64 it would also continue to fault on
 * memory that is now permitted. The same holds for userfaultfd, but not for a
 * scan of NUMA balancing, which changes no VMA.
 *
 * Context: under the table's lock.
 * Return: true if the caller is to flush, whatever it finds in the table.
 */
static inline bool migrc_table_needs_flush(const struct mm_struct *mm,
					   const pte_t *ptep)
{
	return static_branch_unlikely(&migrc_used) &&
	       __migrc_table_needs_flush(mm, ptep);
}

/**
 * migrc_drain() - do all pending flushes and free the quarantine
 * @cause: the reason
 *
 * Context: process context. May sleep; takes no lock that reclaim holds.
 */
static inline void migrc_drain(enum migrc_cause cause)
{
	if (static_branch_unlikely(&migrc_used))
		__migrc_drain(cause);
}

/**
 * migrc_compaction_waits() - check whether compaction may defer flushes
 * @order: the order that compaction is for
 *
 * Compaction for less than a pageblock needs each few sources that it moves
 * to be free. That would cost as many drains as there are flushes to save.
 *
 * Context: any.
 * Return: true if compaction defers flushes, and drains after each pageblock.
 */
static inline bool migrc_compaction_waits(int order)
{
	return order >= (int)pageblock_order;
}

/**
 * migrc_balance() - drain before kswapd checks the watermarks of its node
 * @nid: the node
 *
 * Context: as for migrc_drain().
 */
static inline void migrc_balance(int nid)
{
	if (static_branch_unlikely(&migrc_used))
		__migrc_balance(nid);
}

/**
 * migrc_reclaim() - drain because direct reclaim made no progress
 *
 * Context: as for migrc_drain().
 * Return: base pages that were freed.
 */
static inline unsigned long migrc_reclaim(void)
{
	return static_branch_unlikely(&migrc_used) ? __migrc_reclaim() : 0;
}

/**
 * migrc_batch_begin() - begin a batch of migrate_pages()
 * @batch:	the batch, not initialised
 * @private:	as given to migrate_pages()
 * @reason:	reason of the migration
 *
 * Context: process context. May sleep.
 */
static inline void migrc_batch_begin(struct migrc_batch *batch,
				     unsigned long private,
				     enum migrate_reason reason)
{
	if (static_branch_unlikely(&migrc_used)) {
		__migrc_batch_begin(batch, private, reason);
		return;
	}
	/* If migrc is used from now on, nothing else of the batch is used */
	batch->begun = false;
	batch->mixed = false;
	batch->unflushed = false;
	batch->seen = 0;
}

/**
 * migrc_batch_end() - end a batch: each folio is migrated or put back
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
 * migrc_folio_unmapped() - end the unmapping of a folio that will be migrated
 * @batch:	the batch
 * @src:	the folio, locked, without PTEs
 * @was_mapped:	it was unmapped with TTU_DEFER_FLUSH
 *
 * Context: process context. May sleep.
 * Return: MIGRC_FOLIO_DEFERRED if TLBs may still map @src when it is copied,
 * otherwise 0.
 */
static inline unsigned long migrc_folio_unmapped(struct migrc_batch *batch,
						 const struct folio *src,
						 bool was_mapped)
{
	if (!static_branch_unlikely(&migrc_used) || !was_mapped)
		return 0;
	if (batch->seen)
		return __migrc_folio_unmapped(batch, src);
	batch->nr_writable++;
	return 0;
}

/**
 * migrc_folio_resume() - continue the unmapping of a folio
 * @dst: its destination
 *
 * A run of folios is unmapped VMA by VMA, so the PTEs of one folio are not seen
 * one after the other. Between two of them the destination's migrate_info keeps
 * the state, zero before the first.
 *
 * Context: process context; the folios belong to the caller.
 */
static inline void migrc_folio_resume(const struct folio *dst)
{
	if (static_branch_unlikely(&migrc_used))
		__migrc_folio_resume(dst->migrate_info);
}

/**
 * migrc_folio_suspend() - interrupt the unmapping of a folio
 * @dst: its destination
 *
 * Context: as for migrc_folio_resume().
 */
static inline void migrc_folio_suspend(struct folio *dst)
{
	if (static_branch_unlikely(&migrc_used))
		dst->migrate_info = __migrc_folio_suspend();
}

/**
 * migrc_folio_not_migrated() - end the unmapping of a folio that stays
 * @batch: the batch
 *
 * For a folio that could not be unmapped completely.
 *
 * Context: process context. May sleep.
 */
static inline void migrc_folio_not_migrated(struct migrc_batch *batch)
{
	if (static_branch_unlikely(&migrc_used) && batch->seen)
		__migrc_folio_not_migrated(batch);
}

/**
 * migrc_batch_flush() - flush a mixed batch, unmapped and not yet copied
 * @batch: the batch
 *
 * Context: process context, the folios locked. May sleep.
 */
static inline void migrc_batch_flush(struct migrc_batch *batch)
{
	if (!batch->unflushed)
		return;
	batch->unflushed = false;
	__migrc_batch_flush();
}

/**
 * migrc_try_defer_pte() - decide whether to defer the flush of a PTE
 * @src:	folio that it maps
 * @vma:	VMA of the PTE
 * @flags:	flags of try_to_migrate()
 * @pte:	the PTE, present
 *
 * A writable PTE of a small anonymous folio is rejected inline, because
 * writable memory gains nothing from migrc and should cost nothing. No other
 * PTE maps such a folio, so the batch need not record it.
 *
 * Context: under the PTE's lock, which the caller holds until
 * migrc_defer_pte().
 * Return: true if the caller is to clear the PTE without a flush and then to
 * call migrc_defer_pte().
 */
static inline bool migrc_try_defer_pte(struct folio *src,
				       struct vm_area_struct *vma,
				       enum ttu_flags flags, pte_t pte)
{
	if (!static_branch_unlikely(&migrc_used))
		return false;
	if (pte_write(pte) && folio_test_anon(src) && !folio_test_large(src))
		return false;
	return (flags & TTU_DEFER_FLUSH) &&
	       __migrc_try_defer_pte(src, vma, pte);
}

/**
 * migrc_quarantine_folio() - keep a migrated source until its flush
 * @src:	source folio, referenced by the caller alone
 * @state:	state bits that were recorded with its destination
 *
 * Context: process context.
 * Return: true if migrc took over the caller's reference; false if the caller
 * is to drop it.
 */
static inline bool migrc_quarantine_folio(struct folio *src,
					  unsigned long state)
{
	return (state & MIGRC_FOLIO_DEFERRED) && __migrc_quarantine_folio(src);
}

/**
 * migrc_fork_begin() - announce that fork write-protects PTEs without a flush
 * @mm: the parent's address space, mmap_lock held for writing
 *
 * Until migrc_fork_end(), when fork has flushed, a CPU may have a TLB entry
 * that permits writing although the PTE does not. A task that reads the PTE as
 * write-protected, under its lock, also reads the mark, because fork sets the
 * mark before it takes that lock to write-protect the PTE.
 *
 * Context: process context.
 */
static inline void migrc_fork_begin(struct mm_struct *mm)
{
	WRITE_ONCE(mm->migrc.forking, true);
}

/**
 * migrc_fork_end() - announce that fork has flushed the PTEs
 * @mm: as given to migrc_fork_begin()
 *
 * Context: process context.
 */
static inline void migrc_fork_end(struct mm_struct *mm)
{
	WRITE_ONCE(mm->migrc.forking, false);
}

/**
 * migrc_numa_scan_begin() - announce that NUMA balancing removes access from
 * PTEs
 * @vma: their VMA; the caller holds mmap_lock, so that no other task removes
 *	 write permission
 *
 * Until migrc_numa_scan_end() a flush of these PTEs is pending. If the VMA may
 * not be written, that flush does not hide an earlier write permission, see
 * migrc_read_only().
 *
 * Context: process context.
 */
static inline void migrc_numa_scan_begin(const struct vm_area_struct *vma)
{
	mmap_assert_locked(vma->vm_mm);
	atomic_inc(&vma->vm_mm->migrc.scans);
}

/**
 * migrc_numa_scan_end() - announce that NUMA balancing has flushed the PTEs
 * @vma: as given to migrc_numa_scan_begin()
 *
 * Context: process context.
 */
static inline void migrc_numa_scan_end(const struct vm_area_struct *vma)
{
	atomic_dec(&vma->vm_mm->migrc.scans);
}

/**
 * migrc_flush_tlb_mm() - flush_tlb_mm() that also ends a pending flush
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
static inline void migrc_flush(struct mm_struct *mm, const pte_t *ptep,
			       enum migrc_cause cause) { }
static inline bool migrc_table_needs_flush(const struct mm_struct *mm,
					   const pte_t *ptep)
{
	return false;
}

static inline void migrc_drain(enum migrc_cause cause) { }
static inline bool migrc_compaction_waits(int order) { return false; }
static inline void migrc_balance(int nid) { }
static inline unsigned long migrc_reclaim(void) { return 0; }
static inline void migrc_batch_begin(struct migrc_batch *batch,
				     unsigned long private,
				     enum migrate_reason reason) { }
static inline void migrc_batch_end(struct migrc_batch *batch) { }
static inline unsigned long migrc_folio_unmapped(struct migrc_batch *batch,
						 const struct folio *src,
						 bool was_mapped)
{
	return 0;
}

static inline void migrc_folio_not_migrated(struct migrc_batch *batch) { }
static inline void migrc_folio_resume(const struct folio *dst) { }
static inline void migrc_folio_suspend(struct folio *dst) { }
static inline void migrc_batch_flush(struct migrc_batch *batch) { }

static inline bool migrc_try_defer_pte(struct folio *src,
				       struct vm_area_struct *vma,
				       enum ttu_flags flags, pte_t pte)
{
	return false;
}

static inline void migrc_defer_pte(struct mm_struct *mm, unsigned long addr,
				   const pte_t *ptep, pte_t pte) { }
static inline bool migrc_quarantine_folio(struct folio *src,
					  unsigned long state)
{
	return false;
}

static inline void migrc_fork_begin(struct mm_struct *mm) { }
static inline void migrc_fork_end(struct mm_struct *mm) { }
static inline void migrc_numa_scan_begin(const struct vm_area_struct *vma) { }
static inline void migrc_numa_scan_end(const struct vm_area_struct *vma) { }

/* A macro, because without an MMU there may be no flush_tlb_mm(). */
#define migrc_flush_tlb_mm(mm)	flush_tlb_mm(mm)

#endif /* CONFIG_MIGRC */
#endif /* _LINUX_MIGRC_H */
