/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ASM_ARM64_COPY_NONTEMPORAL_H
#define _ASM_ARM64_COPY_NONTEMPORAL_H

#include <linux/types.h>
#include <asm/barrier.h>

#define arch_store_nontemporal arch_store_nontemporal
static __always_inline void arch_store_nontemporal(u64 *dst, u64 first,
						   u64 second)
{
	asm volatile("stnp %0, %1, [%2]"
		     :: "r" (first), "r" (second), "r" (dst) : "memory");
}

static __always_inline void arch_nontemporal_drain(void)
{
	/* The barriers that order STP order STNP too. */
	smp_wmb();
}

#endif /* _ASM_ARM64_COPY_NONTEMPORAL_H */
