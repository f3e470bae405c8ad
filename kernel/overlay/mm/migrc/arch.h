/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MM_MIGRC_ARCH_H
#define _MM_MIGRC_ARCH_H

/*
 * An architecture provides a flush of one address space, and a flush of several
 * together. The latter is arch_tlbbatch_add_pending() and arch_tlbbatch_flush()
 * of reclaim's batched unmapping, with whole address spaces in place of pages.
 *
 * A flush need not reach a CPU that runs a kernel thread on a borrowed address
 * space: that CPU flushes before it runs user code of the address space again.
 * x86 does so by itself if no page tables are freed.
 */

#include <linux/pgtable.h>

#include <asm/tlbflush.h>

#ifdef CONFIG_X86

/* Whether a new entry for the address may precede the flush of this one. */
static inline bool migrc_arch_may_defer(pte_t pte)
{
	return true;
}

static inline void migrc_arch_flush(struct mm_struct *mm, bool freed_tables)
{
	flush_tlb_mm_range(mm, 0, TLB_FLUSH_ALL, 0, freed_tables);
}

static inline void migrc_arch_gather(struct arch_tlbflush_unmap_batch *batch,
				     struct mm_struct *mm)
{
	arch_tlbbatch_add_pending(batch, mm, 0, TLB_FLUSH_ALL);
}

/* The number of CPUs that a flush of @mm would interrupt. */
static inline unsigned int migrc_arch_ipis(const struct mm_struct *mm)
{
	const struct cpumask *mask = mm_cpumask((struct mm_struct *)mm);
	unsigned int cpus = cpumask_weight(mask);

	if (cpu_feature_enabled(X86_FEATURE_INVLPGB))
		return 0;
	return cpus - (cpus && cpumask_test_cpu(raw_smp_processor_id(), mask));
}

/* The number of CPUs that a flush of @batch interrupts. */
static inline unsigned int
migrc_arch_batch_ipis(const struct arch_tlbflush_unmap_batch *batch)
{
	unsigned int cpus = cpumask_weight(&batch->cpumask);

	return cpus - cpumask_test_cpu(raw_smp_processor_id(),
				       &batch->cpumask);
}

/* The broadcasts that unmapping @ptes in one batch would have sent. */
static inline unsigned long migrc_arch_broadcasts(unsigned long ptes)
{
	return cpu_feature_enabled(X86_FEATURE_INVLPGB) ? 1 : 0;
}

#else /* CONFIG_ARM64: the hardware broadcasts invalidations */

/*
 * Migration replaces a valid entry by another without an invalidation between
 * the two. The architecture requires one (break before make) if the output
 * address changes, unless neither entry is writable and the contents are the
 * same. migrc defers the flush only if both hold, and only while they hold. The
 * size does not change. Code that folds PTEs into contiguous ones, or unfolds
 * them, first invalidates their range, except with BBML3: such a CPU uses one
 * of its entries for an address as a whole, and each of them is valid
 * (contpte_convert()).
 *
 * Attributes change if mprotect() has changed the VMA between the two entries,
 * without an invalidation, as in mprotect() itself. Where an erratum forbids
 * that for an executable entry, the flush is not deferred: mprotect() finds no
 * executable entry to invalidate, see modify_prot_start_ptes().
 */

static inline bool migrc_arch_may_defer(pte_t pte)
{
	return !alternative_has_cap_unlikely(ARM64_WORKAROUND_2645198) ||
	       !pte_user_exec(pte);
}

static inline void migrc_arch_flush(struct mm_struct *mm, bool freed_tables)
{
	flush_tlb_mm(mm);
}

/*
 * Each invalidation is waited for: the kernel has no call that invalidates an
 * address space without waiting.
 */
static inline void migrc_arch_gather(struct arch_tlbflush_unmap_batch *batch,
				     struct mm_struct *mm)
{
	flush_tlb_mm(mm);
}

static inline unsigned int migrc_arch_ipis(const struct mm_struct *mm)
{
	return 0;
}

static inline unsigned int
migrc_arch_batch_ipis(const struct arch_tlbflush_unmap_batch *batch)
{
	return 0;
}

/* One for each PTE: arch_tlbbatch_add_pending() sends it immediately. */
static inline unsigned long migrc_arch_broadcasts(unsigned long ptes)
{
	return ptes;
}

#endif
#endif /* _MM_MIGRC_ARCH_H */
