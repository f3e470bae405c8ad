/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LINUX_MIGRC_TYPES_H
#define _LINUX_MIGRC_TYPES_H

#include <linux/types.h>

/**
 * struct migrc_mm - the pending flushes of an address space
 * @deferred:	generation of the newest deferral, 0 if there never was one
 * @flushed:	generation at which the newest flush of the whole mm began
 * @gathered:	generation of the flush of all mms that includes this one
 * @paid:	generation of the payment that includes this one
 * @node:	in the list of mms that may have a flush pending
 * @forking:	fork has write-protected PTEs and not flushed them yet; written
 *		under mmap_lock, read under the lock of the PTE in question
 * @scans:	NUMA balancing scans that have removed access from PTEs and not
 *		flushed them yet; changed under mmap_lock, read under the lock
 *		of the PTE in question
 * @noted:	the checker's clock at its newest record of a PTE of the mm
 * @checked:	the checker's clock at the newest flush of the whole mm
 *
 * A flush is pending while @deferred >= @flushed. See mm/migrc/mm.c.
 */
struct migrc_mm {
#ifdef CONFIG_MIGRC
	atomic64_t deferred;
	atomic64_t flushed;
	s64 gathered;
	s64 paid;
	struct list_head node;
	bool forking;
	atomic_t scans;
#ifdef CONFIG_MIGRC_DEBUG
	atomic64_t noted;
	atomic64_t checked;
#endif
#endif
};

/* A page table for PTEs begins without a deferral, see mm/migrc/mm.c. */
#define migrc_table_init(_ptdesc)	((_ptdesc)->pt_deferred = 0)

#endif /* _LINUX_MIGRC_TYPES_H */
