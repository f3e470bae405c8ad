/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MM_FERRY_INTERNAL_H
#define _MM_FERRY_INTERNAL_H

#include <linux/ferry.h>
#include <linux/ferry_sysfs.h>
#include <linux/kobject.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/sizes.h>
#include <linux/srcu.h>

/* NR_MAX_BATCHED_MIGRATION of mm/migrate.c: its batch without a migrator. */
#ifdef CONFIG_TRANSPARENT_HUGEPAGE
#define FERRY_STOCK_PAGES	((unsigned long)HPAGE_PMD_NR)
#else
#define FERRY_STOCK_PAGES	512UL
#endif
#define FERRY_STOCK_BYTES	(FERRY_STOCK_PAGES << PAGE_SHIFT)
/* The most folios that a batch locks; a batch without a migrator may, too. */
#define FERRY_LOCKED_FOLIOS	max_t(unsigned long, FERRY_BATCH_FOLIOS, \
				      FERRY_STOCK_PAGES)

/* Walks of page tables between two looks at the clock: a few microseconds. */
#define FERRY_WALKS		16

/* All reasons that folios migrate for. */
#define FERRY_NR_REASONS	MR_NEVER
/* The selection that reasons inherit has the index behind theirs. */
#define FERRY_DEFAULT		FERRY_NR_REASONS

/* The counters of a migrator, for each reason: see stats.c. */
#define FERRY_STATS(TYPE, _last) {				\
	TYPE(FERRY_BATCHES, batches)				\
	TYPE(FERRY_FOLIOS, folios)				\
	TYPE(FERRY_BYTES, bytes)				\
	TYPE(FERRY_COPY_NS, copy_ns)				\
	TYPE(FERRY_FALLBACKS, fallbacks)			\
	TYPE(FERRY_SKIPPED_UNSUPPORTED, skipped_unsupported)	\
	TYPE(FERRY_SKIPPED_PINNED, skipped_pinned)		\
	TYPE(FERRY_SKIPPED_SMALL, skipped_small)		\
	TYPE(FERRY_SKIPPED_NO_BUFFER, skipped_no_buffer)	\
	TYPE(FERRY_REJECTED, rejected)				\
	_last							\
}

enum ferry_stat FERRY_STATS(FERRY_COUNTER_ID, FERRY_NR_STATS);

/**
 * struct ferry_stats - the counters of a migrator for a reason
 * @kobj:	their directory, in that of the migrator
 * @counts:	the counters
 */
struct ferry_stats {
	struct kobject kobj;
	atomic64_t counts[FERRY_NR_STATS];
};

/**
 * struct ferry_entry - a registered migrator
 * @kobj:	its directory in stats/; the release frees the entry
 * @knobs:	its directory of knobs, or NULL
 * @ops:	the migrator
 * @list:	in the registry's list, under ferry_mutex
 * @users:	selections that name it, and its clients, under ferry_mutex
 * @stats:	counters for each reason
 */
struct ferry_entry {
	struct kobject kobj;
	struct kobject *knobs;
	const struct ferry_migrator *ops;
	struct list_head list;
	unsigned int users;
	struct ferry_stats stats[FERRY_NR_REASONS];
};

/**
 * struct ferry_choice - the choice of a reason, or the default
 * @entry:	the migrator, NULL for off
 * @inherit:	the default decides
 */
struct ferry_choice {
	struct ferry_entry *entry;
	bool inherit;
};

/* select.c */
extern struct mutex ferry_mutex;
extern struct srcu_struct ferry_srcu;
extern struct ferry_choice ferry_choices[FERRY_NR_REASONS + 1];
extern const struct ferry_migrator ferry_kernel;

struct ferry_entry *ferry_selected(enum migrate_reason reason);
bool ferry_selects_offload(enum migrate_reason reason);
void ferry_switch(unsigned int index, struct ferry_choice choice);
void ferry_clients_add(int nr);

/* stats.c */
extern const struct kobj_type ferry_entry_ktype;
extern const struct kobj_type ferry_stats_ktype;

static inline void ferry_count(struct ferry_entry *entry,
			       enum migrate_reason reason, enum ferry_stat stat,
			       s64 n)
{
	atomic64_add(n, &entry->stats[reason].counts[stat]);
}

/* reasons.c */
#define FERRY_LOCKED_BUCKETS	11
/* Bounds of 64 us, and twice as much each; the last bucket has none. */
#define FERRY_LOCKED_US(i)	(64UL << (i))

/**
 * struct ferry_pages - base pages that a reason migrated
 * @moved:	that moved
 * @failed:	that did not
 */
struct ferry_pages {
	u64 moved;
	u64 failed;
};

/**
 * struct ferry_locked - how long the folios of batches were locked
 * @batches:	batches, by time
 * @ns:		the sum of the times
 */
struct ferry_locked {
	atomic64_t batches[FERRY_LOCKED_BUCKETS];
	atomic64_t ns;
};

extern struct ferry_locked ferry_locked[FERRY_NR_REASONS];

struct ferry_pages ferry_pages_sum(enum migrate_reason reason);

/* throttle.c */
/* Folios that migrate_pages(2) with a limit queues between two pauses. */
#define FERRY_SLICE_BYTES	SZ_2M

bool ferry_has_rate_limit(enum migrate_reason reason);
void ferry_set_rate_limit(enum migrate_reason reason, unsigned long max);
u64 ferry_slept_ns(enum migrate_reason reason);
void ferry_charge(enum migrate_reason reason, u64 bytes);
s64 ferry_pause_ns(enum migrate_reason reason);
bool ferry_must_wait(enum migrate_reason reason);

/* limits.c */
extern unsigned long ferry_batch_min_bytes;
extern unsigned long ferry_batch_max_bytes;
extern unsigned long ferry_batch_max_us;
extern unsigned long ferry_reason_max_us[FERRY_NR_REASONS];

unsigned long ferry_max_us(enum migrate_reason reason);
bool ferry_list_full(unsigned int nr_folios, unsigned long nr_pages);

unsigned long ferry_limit(unsigned long rate, unsigned long max_us,
			  unsigned long max_bytes);
unsigned long ferry_limit_of(enum migrate_reason reason, int from, int to);
unsigned long ferry_rate(enum migrate_reason reason, int from, int to);
void ferry_fits_update(enum migrate_reason reason, size_t bytes, bool late);
void ferry_rate_update(enum migrate_reason reason, int from, int to,
		       size_t bytes, u64 ns);
void ferry_gained_nothing(const struct ferry_batch *batch);
void ferry_rates_forget(enum migrate_reason reason);
int ferry_rates_init(void);

/* batch.c */
bool ferry_eligible(struct folio *dst, struct folio *src,
		    enum ferry_stat *reason);
int ferry_batches_alloc(void);
struct ferry_batch *ferry_batch_get(void);
void ferry_batch_put(struct ferry_batch *batch);

/* sysfs.c */
int ferry_sysfs_add(struct ferry_entry *entry);
void ferry_sysfs_remove(struct ferry_entry *entry);
bool ferry_sysfs_taken(const char *name);
int ferry_sysfs_init(const struct attribute *migrator);
struct kobject *ferry_stats_dir(const char *name);

/* registry.c */
int ferry_select(unsigned int index, const char *name);
ssize_t ferry_list(unsigned int index, char *buf);
struct ferry_entry *ferry_find(const char *name);
int ferry_entry_get(struct ferry_entry *entry);
void ferry_entry_put(struct ferry_entry *entry);

#endif /* _MM_FERRY_INTERNAL_H */
