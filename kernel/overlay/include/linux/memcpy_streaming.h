/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LINUX_MEMCPY_STREAMING_H
#define _LINUX_MEMCPY_STREAMING_H

/**
 * DOC: Copies that are written once
 *
 * A store to a line that is not in the cache reads the line first and evicts another. For
 * what is written once and not read soon, both are waste. memcpy_streaming() copies with
 * stores that do neither where the architecture has them, and is memcpy() elsewhere.
 *
 * An architecture that has them provides arch_store_streaming(), which stores two words at
 * an address aligned to both, and arch_streaming_drain() in <asm/memcpy_streaming.h>.
 * Unlike memcpy_flushcache(), nothing is promised about persistence, so nothing is flushed.
 *
 * Life cycle: copy, copy, ..., drain, publish.
 */

#include <linux/align.h>
#include <linux/string.h>
#include <linux/types.h>
#include <linux/unroll.h>
#include <asm/barrier.h>
#include <asm/memcpy_streaming.h>

/* Both words of a store lie in one line, and no byte is left for an ordinary store. */
#define MEMCPY_STREAMING_ALIGN	(2 * sizeof(u64))

#ifdef arch_store_streaming

/**
 * memcpy_can_stream() - would a copy bypass the cache as a whole?
 * @dst:	destination
 * @len:	bytes
 *
 * A copy of which only a part can is worse than one of which nothing does: the line at the
 * seam is written twice, once by each kind of store.
 *
 * Return: true if memcpy_streaming() uses streaming stores only, false if none.
 */
static __always_inline bool memcpy_can_stream(const void *dst, size_t len)
{
	return IS_ALIGNED((unsigned long)dst | len, MEMCPY_STREAMING_ALIGN);
}

/* For a loop that asked memcpy_can_stream() once: a constant @src then stays in registers. */
static __always_inline void __memcpy_streaming(void *dst, const void *src, size_t len)
{
	const u64 *from = src;
	u64 *to = dst;
	size_t i;

	unrolled_count(6)
	for (i = 0; i < len / sizeof(u64); i += 2)
		arch_store_streaming(to + i, from[i], from[i + 1]);
}

/**
 * memcpy_streaming() - copy what is not read soon
 * @dst:	destination, best aligned to 16 bytes
 * @src:	source, aligned to 8 bytes
 * @len:	bytes, best a multiple of 16; small and constant to be inlined
 *
 * The order of the stores is lost: others may be told of them only after
 * memcpy_streaming_drain() on the same CPU. Preemption in between is harmless, as a context
 * switch orders them too.
 *
 * Context: any.
 */
static __always_inline void memcpy_streaming(void *dst, const void *src, size_t len)
{
	if (memcpy_can_stream(dst, len))
		__memcpy_streaming(dst, src, len);
	else
		memcpy(dst, src, len);
}

/**
 * memcpy_streaming_drain() - order this CPU's streaming copies before its later stores
 *
 * Context: any.
 */
static __always_inline void memcpy_streaming_drain(void)
{
	arch_streaming_drain();
}

#else /* !arch_store_streaming */

static __always_inline bool memcpy_can_stream(const void *dst, size_t len)
{
	return false;
}

static __always_inline void __memcpy_streaming(void *dst, const void *src, size_t len)
{
	memcpy(dst, src, len);
}

static __always_inline void memcpy_streaming(void *dst, const void *src, size_t len)
{
	memcpy(dst, src, len);
}

static __always_inline void memcpy_streaming_drain(void)
{
	/* Ordinary stores; whoever publishes them pairs. */
	smp_wmb();
}

#endif /* arch_store_streaming */
#endif /* _LINUX_MEMCPY_STREAMING_H */
