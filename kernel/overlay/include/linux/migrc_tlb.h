/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LINUX_MIGRC_TLB_H
#define _LINUX_MIGRC_TLB_H

/*
 * The hooks of mm/migrc/ in code that removes PTEs. asm-generic/tlb.h needs one
 * of them, so this header includes little.
 */

#include <linux/jump_label.h>

struct mm_struct;

#ifdef CONFIG_MIGRC

DECLARE_STATIC_KEY_FALSE(migrc_used);

bool __migrc_flush_gather(struct mm_struct *mm, bool freed_tables);
bool __migrc_flush_entries(void);

/**
 * migrc_flush_gather() - do an mmu_gather's flush and a pending one at once
 * @mm:			the address space
 * @freed_tables:	page tables were removed
 *
 * Context: as for tlb_flush().
 * Return: true if all of @mm was flushed; false if the caller is to flush.
 */
static inline bool migrc_flush_gather(struct mm_struct *mm, bool freed_tables)
{
	return static_branch_unlikely(&migrc_used) &&
	       __migrc_flush_gather(mm, freed_tables);
}

/**
 * migrc_flush_entries() - check whether migration entries need a flush
 *
 * While a migration entry is in place, a CPU may read the source of the folio
 * by a TLB entry whose flush was deferred. Code that removes or moves the entry
 * flushes the address as for a present PTE.
 *
 * Context: any.
 * Return: true if the caller is to flush.
 */
static inline bool migrc_flush_entries(void)
{
	return static_branch_unlikely(&migrc_used) && __migrc_flush_entries();
}

#else

static inline bool migrc_flush_gather(struct mm_struct *mm, bool freed_tables)
{
	return false;
}

static inline bool migrc_flush_entries(void)
{
	return false;
}

#endif /* CONFIG_MIGRC */
#endif /* _LINUX_MIGRC_TLB_H */
