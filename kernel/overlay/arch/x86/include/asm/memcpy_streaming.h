/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ASM_X86_MEMCPY_STREAMING_H
#define _ASM_X86_MEMCPY_STREAMING_H

#include <linux/types.h>

/* KMSAN does not see what assembly stores. */
#if defined(CONFIG_X86_64) && !defined(CONFIG_KMSAN)

#define arch_store_streaming arch_store_streaming
static __always_inline void arch_store_streaming(u64 *dst, u64 first, u64 second)
{
	asm("movnti %1, %0" : "=m" (dst[0]) : "r" (first));
	asm("movnti %1, %0" : "=m" (dst[1]) : "r" (second));
}

/* MOVNTI is weakly ordered even for the CPU's own later stores. */
static __always_inline void arch_streaming_drain(void)
{
	asm volatile("sfence" ::: "memory");
}

#endif /* CONFIG_X86_64 && !CONFIG_KMSAN */
#endif /* _ASM_X86_MEMCPY_STREAMING_H */
