/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LINUX_FERRY_CLAIM_H
#define _LINUX_FERRY_CLAIM_H

#include <linux/atomic.h>
#include <linux/bits.h>
#include <linux/ferry.h>
#include <linux/mm.h>

/**
 * DOC: Claims of the parts of a batch
 *
 * A batch is one run of bytes, folio after folio. CPUs claim parts of it from
 * the front and DMA channels from the back, each as much as it copies next,
 * until nothing is left. A faster one claims more, and no prediction of how
 * much is needed.
 *
 * One word has both ends, so each page is claimed exactly once. A claim that
 * succeeds is fully ordered. One that finds nothing left is an acquire, so it
 * sees all stores that preceded the other claims.
 */

/**
 * struct ferry_claims - which parts of a batch are claimed
 * @ends:	pages claimed from the front, and << 32 those from the back
 * @nr_pages:	pages of the batch
 */
struct ferry_claims {
	atomic64_t ends;
	u32 nr_pages;
};

static inline u32 ferry_pages_left(const struct ferry_claims *claims, u64 ends)
{
	return claims->nr_pages - lower_32_bits(ends) - upper_32_bits(ends);
}

/* Bytes that are not claimed. */
static inline size_t ferry_unclaimed(const struct ferry_claims *claims)
{
	return (size_t)ferry_pages_left(claims, atomic64_read(&claims->ends))
	       << PAGE_SHIFT;
}

static inline void ferry_claims_init(struct ferry_claims *claims,
				     const struct ferry_batch *batch)
{
	claims->nr_pages = batch->bytes >> PAGE_SHIFT;
	atomic64_set(&claims->ends, 0);
}

/**
 * ferry_claim() - claim a part of a batch
 * @claims:	the claims of the batch
 * @want:	bytes, a multiple of PAGE_SIZE
 * @back:	claim from the back
 * @start:	receives the offset in the batch
 *
 * Context: any.
 * Return: the bytes claimed, less than @want if there are no more; 0 if nothing
 * is left.
 */
static inline size_t ferry_claim(struct ferry_claims *claims, size_t want,
				 bool back, size_t *start)
{
	s64 ends = atomic64_read(&claims->ends), claimed;
	u32 left, pages;

	do {
		left = ferry_pages_left(claims, ends);
		pages = min(want >> PAGE_SHIFT, left);
		if (!pages) {
			smp_acquire__after_ctrl_dep();
			return 0;
		}
		claimed = back ? (s64)pages << 32 : pages;
	} while (!atomic64_try_cmpxchg(&claims->ends, &ends, ends + claimed));
	*start = lower_32_bits(ends) + (back ? left - pages : 0);
	*start <<= PAGE_SHIFT;
	return (size_t)pages << PAGE_SHIFT;
}

#endif /* _LINUX_FERRY_CLAIM_H */
