// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Comparing what was copied
 *
 * The answer to drivers that report errors as success. A source may be poisoned: it is read
 * into a page of our own by the copy that survives a machine check, where there is one, and
 * compared from there; what cannot be read counts as different, as nothing proves the copy, and
 * is left to the move phase, which reports it.
 *
 * Lock order: none are taken.
 */

#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "internal.h"

/* What is read of a source at a time, on the stack. */
#define DCBM_STEP	256

static bool dcbm_same_bytes(const void *dst, const void *src, size_t len)
{
	char copy[DCBM_STEP];
	size_t step;

	if (!IS_ENABLED(CONFIG_ARCH_HAS_COPY_MC))
		return !memcmp(dst, src, len);
	for (; len; len -= step, dst += step, src += step) {
		step = min(len, sizeof(copy));
		if (copy_mc_to_kernel(copy, src, step) || memcmp(dst, copy, step))
			return false;
	}
	return true;
}

static bool dcbm_same_piece(struct dcbm_share *share, unsigned int piece)
{
	const void *src = sg_virt(&share->src[piece]), *dst = sg_virt(&share->dst[piece]);
	size_t offset, len = share->src[piece].length;

	for (offset = 0; offset < len; offset += PAGE_SIZE) {
		if (!dcbm_same_bytes(dst + offset, src + offset, PAGE_SIZE))
			return false;
	}
	cond_resched();
	return true;
}

/**
 * dcbm_same() - do source and destination of a descriptor hold the same?
 * @share:	the share, unmapped
 * @desc:	one of its descriptors
 *
 * Context: process context; the folios are locked and nobody else can reach them.
 * Return: true if no difference was found and all sources could be read.
 */
bool dcbm_same(struct dcbm_share *share, const struct dcbm_desc *desc)
{
	u64 start = ktime_get_ns();
	bool same = true;
	unsigned int i;

	for (i = desc->first; same && i < desc->first + desc->nr; i++)
		same = dcbm_same_piece(share, i);
	if (same)
		dcbm_count(DCBM_VERIFIED_BYTES, desc->len);
	dcbm_count(DCBM_VERIFY_NS, ktime_get_ns() - start);
	return same;
}
