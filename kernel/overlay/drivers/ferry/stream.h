/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _FERRY_STREAM_H
#define _FERRY_STREAM_H

#include <linux/mm.h>
#include <linux/types.h>

/*
 * Copy a page with stores that bypass the cache. They spare the read of the destination's
 * lines and leave the cache to others, but the next reader finds the page in memory.
 *
 * Integer registers only: there is no FPU state to save, so any context will do. The stores
 * are weakly ordered: nobody else may be told of them before ferry_stream_drain().
 *
 * ferry_stream_page() returns 0, or the bytes that are missing when the source is poisoned
 * and the architecture can tell. Addresses are page-aligned.
 */

#if defined(CONFIG_X86_64)	/* UML on x86-64 has it too, but no machine checks */

#ifdef CONFIG_ARCH_HAS_COPY_MC
#include <asm/asm.h>
#define FERRY_STREAM_LOAD(label, off, reg)					\
	#label ": movq " #off "(%[src]), %%" #reg "\n\t"			\
	_ASM_EXTABLE_TYPE(label ## b, 90f, EX_TYPE_DEFAULT_MCE_SAFE)
#else
#define FERRY_STREAM_LOAD(label, off, reg)					\
	#label ": movq " #off "(%[src]), %%" #reg "\n\t"
#endif

static inline size_t ferry_stream_page(void *dst, const void *src)
{
	unsigned long lines = PAGE_SIZE / 64;

	asm volatile("10:\n\t"
		     FERRY_STREAM_LOAD(11, 0, r8)
		     FERRY_STREAM_LOAD(12, 8, r9)
		     FERRY_STREAM_LOAD(13, 16, r10)
		     FERRY_STREAM_LOAD(14, 24, r11)
		     "movnti %%r8, (%[dst])\n\t"
		     "movnti %%r9, 8(%[dst])\n\t"
		     "movnti %%r10, 16(%[dst])\n\t"
		     "movnti %%r11, 24(%[dst])\n\t"
		     FERRY_STREAM_LOAD(15, 32, r8)
		     FERRY_STREAM_LOAD(16, 40, r9)
		     FERRY_STREAM_LOAD(17, 48, r10)
		     FERRY_STREAM_LOAD(18, 56, r11)
		     "movnti %%r8, 32(%[dst])\n\t"
		     "movnti %%r9, 40(%[dst])\n\t"
		     "movnti %%r10, 48(%[dst])\n\t"
		     "movnti %%r11, 56(%[dst])\n\t"
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

static inline void ferry_stream_drain(void)
{
	asm volatile("sfence" ::: "memory");
}

#define FERRY_HAS_STREAM	(!IS_ENABLED(CONFIG_KMSAN))

/* Memory tags travel with copy_highpage() only. */
#elif defined(CONFIG_ARM64) && !defined(CONFIG_ARM64_MTE)

static inline size_t ferry_stream_page(void *dst, const void *src)
{
	unsigned long lines = PAGE_SIZE / 64;

	asm volatile("1:\n\t"
		     "ldp x8, x9, [%[src]]\n\t"
		     "ldp x10, x11, [%[src], #16]\n\t"
		     "ldp x12, x13, [%[src], #32]\n\t"
		     "ldp x14, x15, [%[src], #48]\n\t"
		     "add %[src], %[src], #64\n\t"
		     "stnp x8, x9, [%[dst]]\n\t"
		     "stnp x10, x11, [%[dst], #16]\n\t"
		     "stnp x12, x13, [%[dst], #32]\n\t"
		     "stnp x14, x15, [%[dst], #48]\n\t"
		     "add %[dst], %[dst], #64\n\t"
		     "subs %[lines], %[lines], #1\n\t"
		     "b.ne 1b\n"
		     : [dst] "+r" (dst), [src] "+r" (src), [lines] "+r" (lines)
		     :
		     : "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15",
		       "memory", "cc");
	return 0;
}

static inline void ferry_stream_drain(void)
{
	/* STNP is ordered by the same barriers as STP. */
	smp_wmb();
}

#define FERRY_HAS_STREAM	(!IS_ENABLED(CONFIG_KMSAN))

#else

static inline size_t ferry_stream_page(void *dst, const void *src)
{
	copy_page(dst, src);
	return 0;
}

static inline void ferry_stream_drain(void)
{
}

#define FERRY_HAS_STREAM	0

#endif
#endif /* _FERRY_STREAM_H */
