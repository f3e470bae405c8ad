/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MM_MIGRC_INTERNAL_H
#define _MM_MIGRC_INTERNAL_H

#include <linux/atomic.h>
#include <linux/ferry_sysfs.h>
#include <linux/migrc.h>

#include "check.h"
#include "mutate.h"

/* What migrate_pages_batch() gathers at most, unless an offload migrator is selected. */
#define MIGRC_BATCH_PAGES	512L

/* The counters; the flushes are last, in the order of enum migrc_cause. */
#define MIGRC_STATS(TYPE, _last) {				\
	TYPE(MIGRC_FOLIOS, folios)				\
	TYPE(MIGRC_PTES, ptes)					\
	TYPE(MIGRC_AVOIDED_FLUSHES, avoided_flushes)		\
	TYPE(MIGRC_AVOIDED_IPIS, avoided_ipis)			\
	TYPE(MIGRC_AVOIDED_BROADCASTS, avoided_broadcasts)	\
	TYPE(MIGRC_SKIPPED_WRITABLE, skipped_writable)		\
	TYPE(MIGRC_SKIPPED_FILE, skipped_file)			\
	TYPE(MIGRC_SKIPPED_FULL, skipped_full)			\
	TYPE(MIGRC_SKIPPED_PAUSED, skipped_paused)		\
	TYPE(MIGRC_FLUSHED_WRITE_FAULT, flushed_write_fault)	\
	TYPE(MIGRC_FLUSHED_SWAP_FAULT, flushed_swap_fault)	\
	TYPE(MIGRC_FLUSHED_UNMAP, flushed_unmap)		\
	TYPE(MIGRC_FLUSHED_GUP, flushed_gup)			\
	TYPE(MIGRC_FLUSHED_MIXED, flushed_mixed)		\
	TYPE(MIGRC_FLUSHED_FILE, flushed_file)			\
	TYPE(MIGRC_FLUSHED_FULL, flushed_full)			\
	TYPE(MIGRC_FLUSHED_AGE, flushed_age)			\
	TYPE(MIGRC_FLUSHED_PRESSURE, flushed_pressure)		\
	TYPE(MIGRC_FLUSHED_COMPACTION, flushed_compaction)	\
	TYPE(MIGRC_FLUSHED_DRAIN, flushed_drain)		\
	TYPE(MIGRC_FLUSHED_FAILURE, flushed_failure)		\
	TYPE(MIGRC_FLUSHED_OFF, flushed_off)			\
	_last							\
}

enum migrc_stat MIGRC_STATS(FERRY_COUNTER_ID, MIGRC_NR_STATS);

/* space.c */
bool migrc_owes_flush(const struct mm_struct *mm);
s64 migrc_clock_now(void);
void migrc_raise(atomic64_t *clock, s64 to);
void migrc_space_defer(struct mm_struct *mm);
s64 migrc_flush_spaces(void);

/* unmap.c */
bool migrc_read_only(const struct vm_area_struct *vma);

/* file.c */
bool migrc_file_eligible(const struct folio *folio);
bool migrc_file_commit(const struct folio *folio);
void migrc_files_flushed(s64 start);

/* quarantine.c */
long migrc_reserve(long pages);
void migrc_unreserve(long pages);
void migrc_quarantine(struct migrc_batch *batch);
unsigned long migrc_quarantined(void);
unsigned long migrc_quarantine_peak(void);
unsigned int migrc_quarantine_oldest_ms(void);
unsigned long migrc_bound(void);
void migrc_set_bound(unsigned long pages);
unsigned int migrc_max_age_ms(void);
void migrc_set_max_age_ms(unsigned int ms);

/* pressure.c */
bool migrc_paused(void);

/* knobs.c */
bool migrc_is_enabled(void);

/* stats.c */
extern const struct attribute_group migrc_counters_group;

void migrc_count(enum migrc_stat stat, unsigned long n);
void migrc_count_flush(enum migrc_cause cause);

#endif /* _MM_MIGRC_INTERNAL_H */
