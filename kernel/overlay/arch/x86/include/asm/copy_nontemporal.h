/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ASM_X86_COPY_NONTEMPORAL_H
#define _ASM_X86_COPY_NONTEMPORAL_H

#include <linux/types.h>

/* KMSAN does not see the stores of an asm statement. */
#if defined(CONFIG_X86_64) && !defined(CONFIG_KMSAN)

#define arch_store_nontemporal arch_store_nontemporal
static __always_inline void arch_store_nontemporal(u64 *dst, u64 first,
						   u64 second)
{
	asm("movnti %1, %0" : "=m" (dst[0]) : "r" (first));
	asm("movnti %1, %0" : "=m" (dst[1]) : "r" (second));
}

/* MOVNTI is weakly ordered even with later stores of the same CPU. */
static __always_inline void arch_nontemporal_drain(void)
{
	asm volatile("sfence" ::: "memory");
}

/* UML shares this header, but has no machine checks to recover from. */
#ifdef CONFIG_ARCH_HAS_COPY_MC
#include <asm/asm.h>
#include <asm/page_types.h>

#define NONTEMPORAL_LOAD_MC(off, reg)					\
	"1: movq " #off "(%[src]), %%" #reg "\n\t"			\
	_ASM_EXTABLE_TYPE(1b, 90f, EX_TYPE_DEFAULT_MCE_SAFE)

#define NONTEMPORAL_COPY32_MC(o0, o1, o2, o3)				\
	NONTEMPORAL_LOAD_MC(o0, r8)					\
	NONTEMPORAL_LOAD_MC(o1, r9)					\
	NONTEMPORAL_LOAD_MC(o2, r10)					\
	NONTEMPORAL_LOAD_MC(o3, r11)					\
	"movnti %%r8, " #o0 "(%[dst])\n\t"				\
	"movnti %%r9, " #o1 "(%[dst])\n\t"				\
	"movnti %%r10, " #o2 "(%[dst])\n\t"				\
	"movnti %%r11, " #o3 "(%[dst])\n\t"

#define arch_copy_page_nontemporal_mc arch_copy_page_nontemporal_mc
static inline size_t arch_copy_page_nontemporal_mc(void *dst, const void *src)
{
	unsigned long lines = PAGE_SIZE / 64;

	asm volatile("10:\n\t"
		     NONTEMPORAL_COPY32_MC(0, 8, 16, 24)
		     NONTEMPORAL_COPY32_MC(32, 40, 48, 56)
		     "addq $64, %[src]\n\t"
		     "addq $64, %[dst]\n\t"
		     "decq %[lines]\n\t"
		     "jnz 10b\n"
		     "90:\n"
		     : [dst] "+r" (dst), [src] "+r" (src), [lines] "+r" (lines)
		     :
		     : "r8", "r9", "r10", "r11", "memory", "cc");
	return lines * 64;
}

#undef NONTEMPORAL_COPY32_MC
#undef NONTEMPORAL_LOAD_MC
#endif /* CONFIG_ARCH_HAS_COPY_MC */

#endif /* CONFIG_X86_64 && !CONFIG_KMSAN */
#endif /* _ASM_X86_COPY_NONTEMPORAL_H */
