/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LINUX_COPY_NONTEMPORAL_H
#define _LINUX_COPY_NONTEMPORAL_H

/**
 * DOC: Non-temporal copies
 *
 * A store to a line that is not in the cache reads the line first and evicts
 * another. A caller that writes memory once and does not read it soon gains
 * from neither. copy_nontemporal() copies with non-temporal stores, which do
 * neither, on an architecture that has them, and with memcpy() elsewhere.
 *
 * Such an architecture provides two functions in <asm/copy_nontemporal.h>:
 * arch_store_nontemporal(), which stores two words at an address aligned to
 * both, and arch_nontemporal_drain(). Both use integer registers only, so
 * there is no FPU state to save. Unlike memcpy_flushcache(), copy_nontemporal()
 * promises nothing about persistence, so it flushes nothing.
 *
 * Life cycle:
 *
 * 1. A CPU makes any number of copies.
 * 2. The same CPU calls copy_nontemporal_drain().
 * 3. The CPU publishes the copies to others.
 */

#include <linux/align.h>
#include <linux/kconfig.h>
#include <linux/string.h>
#include <linux/types.h>
#include <linux/unroll.h>
#include <asm/barrier.h>
#include <asm/copy_nontemporal.h>
#include <asm/page.h>

/* Both words of a store lie in one line; no byte needs an ordinary store. */
#define COPY_NONTEMPORAL_ALIGN	(2 * sizeof(u64))

#ifdef arch_store_nontemporal

/**
 * copy_nontemporal_possible() - would a copy use non-temporal stores only?
 * @dst: destination
 * @len: bytes
 *
 * A copy that mixes both kinds of store is slower than either: each line that
 * both kinds write is written to memory twice.
 *
 * Return: true if copy_nontemporal() would use non-temporal stores only, false
 * if it would use none.
 */
static __always_inline bool copy_nontemporal_possible(const void *dst,
						      size_t len)
{
	return IS_ALIGNED((unsigned long)dst | len, COPY_NONTEMPORAL_ALIGN);
}

/*
 * For a loop that called copy_nontemporal_possible() once before it: a constant
 * @src then stays in registers.
 */
static __always_inline void __copy_nontemporal(void *dst, const void *src,
					       size_t len)
{
	const u64 *from = src;
	u64 *to = dst;
	size_t i;

	unrolled_count(6)
	for (i = 0; i < len / sizeof(u64); i += 2)
		arch_store_nontemporal(to + i, from[i], from[i + 1]);
}

#else /* !arch_store_nontemporal */

static __always_inline bool copy_nontemporal_possible(const void *dst,
						      size_t len)
{
	return false;
}

static __always_inline void __copy_nontemporal(void *dst, const void *src,
					       size_t len)
{
	memcpy(dst, src, len);
}

/* The copies were ordinary stores; the reader's barrier pairs with this one. */
#define arch_nontemporal_drain()	smp_wmb()

#endif /* arch_store_nontemporal */

/**
 * copy_nontemporal() - copy memory that is not read soon
 * @dst: destination, best aligned to 16 bytes
 * @src: source, aligned to 8 bytes
 * @len: bytes, best a multiple of 16; small and constant to be inlined
 *
 * The stores are weakly ordered. The caller publishes them only after it called
 * copy_nontemporal_drain() on the same CPU. Preemption in between is harmless:
 * a context switch orders non-temporal stores too.
 *
 * Context: any.
 */
static __always_inline void copy_nontemporal(void *dst, const void *src,
					     size_t len)
{
	if (copy_nontemporal_possible(dst, len))
		__copy_nontemporal(dst, src, len);
	else
		memcpy(dst, src, len);
}

/**
 * copy_nontemporal_drain() - order non-temporal stores before later stores
 *
 * Orders this CPU's earlier copies before its later stores.
 *
 * Context: any.
 */
static __always_inline void copy_nontemporal_drain(void)
{
	arch_nontemporal_drain();
}

/**
 * copy_page_nontemporal_possible() - does copy_page_nontemporal_mc() replace
 *	copy_mc_highpage()?
 *
 * It does not on arm64 with memory tags, which only copy_highpage() copies.
 *
 * Return: a constant for the compiler: true if copy_page_nontemporal_mc() uses
 * non-temporal stores and copies the whole state of a page.
 */
static __always_inline bool copy_page_nontemporal_possible(void)
{
	return copy_nontemporal_possible(NULL, PAGE_SIZE) &&
	       !IS_ENABLED(CONFIG_ARM64_MTE);
}

/**
 * copy_page_nontemporal_mc() - copy a page that is not read soon
 * @dst: destination, page-aligned
 * @src: source, page-aligned
 *
 * The rules of copy_nontemporal() apply: call copy_nontemporal_drain() before
 * the copy is published. On x86, the copy ends early if a load takes a machine
 * check because the source is poisoned.
 *
 * Context: any.
 * Return: 0, or the bytes that are missing at the end of @dst, a multiple of
 * 64, where the architecture recovers from reads of poisoned memory.
 */
static inline size_t copy_page_nontemporal_mc(void *dst, const void *src)
{
#ifdef arch_copy_page_nontemporal_mc
	return arch_copy_page_nontemporal_mc(dst, src);
#else
	const struct { u64 word[8]; } *from = src;
	size_t i;

	for (i = 0; i < PAGE_SIZE / sizeof(*from); i++) {
		/* All loads of a line before its stores. */
		typeof(*from) line = from[i];

		__copy_nontemporal(dst + i * sizeof(line), &line, sizeof(line));
	}
	return 0;
#endif
}

#endif /* _LINUX_COPY_NONTEMPORAL_H */
