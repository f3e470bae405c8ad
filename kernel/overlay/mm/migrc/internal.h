/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MM_MIGRC_INTERNAL_H
#define _MM_MIGRC_INTERNAL_H

#include <linux/atomic.h>
#include <linux/migrc.h>

#include "check.h"
#include "mutate.h"

struct attribute_group;

/* What migrate_pages_batch() gathers at most, unless an offload migrator is selected. */
#define MIGRC_BATCH_PAGES	512L

/* What is counted beside the flushes; the names are in stats.c. */
enum migrc_stat {
	MIGRC_FOLIOS,
	MIGRC_PTES,
	MIGRC_AVOIDED_FLUSHES,
	MIGRC_AVOIDED_IPIS,
	MIGRC_AVOIDED_BROADCASTS,
	MIGRC_REFUSED_WRITABLE,
	MIGRC_REFUSED_FILE,
	MIGRC_REFUSED_FULL,
	MIGRC_REFUSED_PAUSED,
	MIGRC_NR_STATS,
};

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
