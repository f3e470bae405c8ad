/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ASM_ARM64_MEMCPY_STREAMING_H
#define _ASM_ARM64_MEMCPY_STREAMING_H

#include <linux/types.h>
#include <asm/barrier.h>

#define arch_store_streaming arch_store_streaming
static __always_inline void arch_store_streaming(u64 *dst, u64 first, u64 second)
{
	asm volatile("stnp %0, %1, [%2]" :: "r" (first), "r" (second), "r" (dst) : "memory");
}

static __always_inline void arch_streaming_drain(void)
{
	/* STNP may be seen out of order by other CPUs, as any store; whoever publishes pairs. */
	smp_wmb();
}

#endif /* _ASM_ARM64_MEMCPY_STREAMING_H */
