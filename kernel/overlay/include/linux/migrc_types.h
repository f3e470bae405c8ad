/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LINUX_MIGRC_TYPES_H
#define _LINUX_MIGRC_TYPES_H

#include <linux/types.h>

/**
 * struct migrc_mm - what an address space owes its TLBs
 * @deferred:	clock of the newest flush that was left out, 0 if there never was one
 * @flushed:	clock at the start of the newest flush of the whole space
 * @gathered:	start of the common flush that the space takes part in now
 * @node:	in the list of spaces that may owe a flush
 * @forking:	fork has write-protected PTEs that it has not flushed yet; written under
 *		mmap_lock, read under the lock of the PTE in question
 * @scans:	NUMA balancing's, that have taken access from PTEs and not flushed them yet;
 *		changed under mmap_lock, read under the lock of the PTE in question
 * @noted:	for the checker: when it last remembered a PTE of the space
 * @checked:	for the checker: when it last saw the whole space flushed
 *
 * The space owes a flush while @deferred >= @flushed. See mm/migrc/mm.c.
 */
struct migrc_mm {
#ifdef CONFIG_MIGRC
	atomic64_t deferred;
	atomic64_t flushed;
	s64 gathered;
	struct list_head node;
	bool forking;
	atomic_t scans;
#ifdef CONFIG_MIGRC_DEBUG
	atomic64_t noted;
	atomic64_t checked;
#endif
#endif
};

#endif /* _LINUX_MIGRC_TYPES_H */
