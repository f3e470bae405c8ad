/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MM_MIGRC_ARCH_H
#define _MM_MIGRC_ARCH_H

/*
 * What migrc asks of an architecture: to flush one address space, and to flush several
 * together. The latter is what the batched unmapping of reclaim already has,
 * arch_tlbbatch_add_pending() and arch_tlbbatch_flush(), with whole address spaces in the
 * place of pages.
 *
 * No flush needs to reach a CPU that runs a kernel thread on a borrowed address space: it
 * flushes before it runs that space's user code again. x86 does so by itself when no
 * page tables are freed.
 */

#include <asm/tlbflush.h>

#ifdef CONFIG_X86

static inline void migrc_arch_flush(struct mm_struct *mm)
{
	flush_tlb_mm_range(mm, 0, TLB_FLUSH_ALL, 0, false);
}

static inline void migrc_arch_gather(struct arch_tlbflush_unmap_batch *batch,
				     struct mm_struct *mm)
{
	arch_tlbbatch_add_pending(batch, mm, 0, TLB_FLUSH_ALL);
}

/* CPUs that a flush of @mm would interrupt. */
static inline unsigned int migrc_arch_ipis(const struct mm_struct *mm)
{
	unsigned int cpus = cpumask_weight(mm_cpumask((struct mm_struct *)mm));

	if (cpu_feature_enabled(X86_FEATURE_INVLPGB))
		return 0;
	return cpus - (cpus && cpumask_test_cpu(raw_smp_processor_id(),
						mm_cpumask((struct mm_struct *)mm)));
}

/* Messages to all CPUs that unmapping @ptes in one batch would have sent. */
static inline unsigned long migrc_arch_broadcasts(unsigned long ptes)
{
	return cpu_feature_enabled(X86_FEATURE_INVLPGB) ? 1 : 0;
}

#else /* CONFIG_ARM64: the hardware tells the other CPUs */

/*
 * A valid entry is replaced by another without an invalidation between the two. The
 * architecture asks for one (break before make) when the output address changes, unless
 * neither is writable and the contents are the same: which is when migrc defers, and for as
 * long. Size and attributes do not change. Who folds PTEs into contiguous ones, or unfolds
 * them, invalidates their range first, but under BBML3: such a CPU uses one of the entries
 * that it has for an address, whole, and each of them is right (contpte_convert()).
 */

static inline void migrc_arch_flush(struct mm_struct *mm)
{
	flush_tlb_mm(mm);
}

/* Waited for one by one: the kernel has no call that invalidates a space without waiting. */
static inline void migrc_arch_gather(struct arch_tlbflush_unmap_batch *batch,
				     struct mm_struct *mm)
{
	flush_tlb_mm(mm);
}

static inline unsigned int migrc_arch_ipis(const struct mm_struct *mm)
{
	return 0;
}

/* One for each PTE: arch_tlbbatch_add_pending() sends them as they come. */
static inline unsigned long migrc_arch_broadcasts(unsigned long ptes)
{
	return ptes;
}

#endif
#endif /* _MM_MIGRC_ARCH_H */
