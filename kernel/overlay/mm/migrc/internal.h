/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MM_MIGRC_INTERNAL_H
#define _MM_MIGRC_INTERNAL_H

#include <linux/atomic.h>
#include <linux/ferry_sysfs.h>
#include <linux/list.h>
#include <linux/migrc.h>

/* Limit of a batch of migrate_pages(), without an offload migrator. */
#define MIGRC_BATCH_PAGES	512

/* The counters; the flushes are last, in the order of enum migrc_cause. */
#define MIGRC_STATS(TYPE, _last) {				\
	TYPE(MIGRC_FOLIOS, folios)				\
	TYPE(MIGRC_PTES, ptes)					\
	TYPE(MIGRC_AVOIDED_FLUSHES, avoided_flushes)		\
	TYPE(MIGRC_AVOIDED_IPIS, avoided_ipis)			\
	TYPE(MIGRC_AVOIDED_BROADCASTS, avoided_broadcasts)	\
	TYPE(MIGRC_SKIPPED_WRITABLE, skipped_writable)		\
	TYPE(MIGRC_SKIPPED_FILE, skipped_file)			\
	TYPE(MIGRC_SKIPPED_PAUSED, skipped_paused)		\
	TYPE(MIGRC_FLUSHED_WRITE_FAULT, flushed_write_fault)	\
	TYPE(MIGRC_FLUSHED_SWAP_FAULT, flushed_swap_fault)	\
	TYPE(MIGRC_FLUSHED_PROTECT, flushed_protect)		\
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

/*
 * Fault injection: a test can leave out single steps of migrc, to check that it
 * detects their absence. A fault that leaves out a flush has the number of the
 * flush's cause.
 */
enum migrc_fault {
	/* a folio of an open file is deferred */
	MIGRC_FAIL_FILE_RECHECK = MIGRC_NR_CAUSES,
	/* migration entries are not flushed */
	MIGRC_FAIL_ENTRY,
	/* mprotect() flushes only for PTEs that it changes */
	MIGRC_FAIL_TABLE,
	MIGRC_FAIL_PENDING,		/* deferred while a flush is pending */
	MIGRC_FAIL_FORK,		/* deferred before fork has flushed */
	MIGRC_FAIL_QUARANTINE,		/* sources are freed at once */
	MIGRC_FAIL_DRAIN,		/* a drain frees without a flush */
	MIGRC_FAIL_GENERATION,		/* no flush is ever pending */
	MIGRC_NR_FAULTS,
};

/* check.c */
#ifdef CONFIG_MIGRC_DEBUG
/* Deferred PTEs that the checker can remember, a power of two. */
#define MIGRC_RECORDS	BIT(16)

struct migrc_record;

extern unsigned long migrc_faults;
extern atomic_t migrc_violations;

static inline bool migrc_should_fail(unsigned int fault)
{
	return READ_ONCE(migrc_faults) & BIT(fault);
}

void migrc_check_report(const char *what, const struct migrc_record *record);
void migrc_check_init(struct mm_struct *mm);
void migrc_check_exit(struct mm_struct *mm);
void migrc_check_deferred(struct mm_struct *mm, unsigned long addr, pte_t pte);
bool migrc_check_pending(void);
void migrc_check_flushed(struct mm_struct *mm, s64 start);
void migrc_check_report_rearm(void);

#else

static inline bool migrc_should_fail(unsigned int fault)
{
	return false;
}

static inline void migrc_check_init(struct mm_struct *mm) { }
static inline void migrc_check_exit(struct mm_struct *mm) { }
static inline void migrc_check_deferred(struct mm_struct *mm,
					unsigned long addr, pte_t pte) { }
static inline bool migrc_check_pending(void) { return true; }
static inline void migrc_check_flushed(struct mm_struct *mm, s64 start) { }

#endif /* CONFIG_MIGRC_DEBUG */

/**
 * migrc_advance() - raise a generation, never lower it
 * @generation:	the generation
 * @to:		its least value afterwards
 *
 * Context: any.
 */
static inline void migrc_advance(atomic64_t *generation, s64 to)
{
	s64 old = atomic64_read(generation);

	while (old < to && !atomic64_try_cmpxchg(generation, &old, to))
		;
}

/* mm.c */
extern bool migrc_enabled;
extern atomic64_t migrc_flushed_gen;

bool migrc_flush_pending(const struct mm_struct *mm);
bool migrc_table_pending(const struct mm_struct *mm, const pte_t *ptep);
s64 migrc_generation(void);
void migrc_mm_defer(struct mm_struct *mm, const pte_t *ptep);
void migrc_flush_mms(void);
#if IS_ENABLED(CONFIG_KUNIT)
extern struct mutex migrc_flush_mutex;
extern spinlock_t migrc_pay_lock;

void migrc_pay(struct mm_struct *mm);
void migrc_flush_all_mms(void);
#endif

/* unmap.c */
bool migrc_read_only(const struct folio *src, struct vm_area_struct *vma);

/* file.c */
bool migrc_file_eligible(const struct folio *folio);
bool migrc_file_commit(const struct folio *folio);

/* quarantine.c */
/**
 * struct migrc_active_drain - a drain that has not freed all of its folios
 * @node:	in the list of them
 * @nr:		its number, in the order in which they began
 */
struct migrc_active_drain {
	struct list_head node;
	unsigned long nr;
};

extern unsigned long migrc_max_age_ms;

void migrc_quarantine(struct migrc_batch *batch);
unsigned long migrc_node_quarantined(int nid);
unsigned long migrc_quarantined(void);
unsigned long migrc_being_freed(void);
unsigned long migrc_quarantine_peak(void);
unsigned int migrc_quarantine_oldest_ms(void);
unsigned long migrc_bound(void);
void migrc_set_bound(unsigned long pages);
void migrc_apply_max_age(void);
#if IS_ENABLED(CONFIG_KUNIT)
extern struct mutex migrc_drain_mutex;

unsigned long migrc_node_bound(int nid);
void migrc_free(struct list_head *folios);
void migrc_drain_begin(struct migrc_active_drain *drain);
void migrc_drain_end(struct migrc_active_drain *drain);
#endif

/* reclaim.c */
bool migrc_paused(void);

/* stats.c */
extern const struct attribute_group migrc_counters_group;

void migrc_count(enum migrc_stat stat, unsigned long n);
void migrc_count_flush(enum migrc_cause cause);
void migrc_count_paid(unsigned int ipis, unsigned long broadcasts);

#endif /* _MM_MIGRC_INTERNAL_H */
