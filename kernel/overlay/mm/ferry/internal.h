/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MM_FERRY_INTERNAL_H
#define _MM_FERRY_INTERNAL_H

#include <linux/ferry.h>
#include <linux/ferry_sysfs.h>
#include <linux/kobject.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/srcu.h>
#include <linux/static_call_types.h>

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

/* The counters of each migrator: see stats.c. */
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
 * struct ferry_entry - a registered migrator
 * @kobj:	its directory in stats/; the release frees the entry
 * @knobs:	its directory of knobs, or NULL
 * @ops:	the migrator
 * @list:	in the registry's list, under ferry_mutex
 * @stats:	counters
 */
struct ferry_entry {
	struct kobject kobj;
	struct kobject *knobs;
	const struct ferry_migrator *ops;
	struct list_head list;
	atomic64_t stats[FERRY_NR_STATS];
};

/* select.c */
extern struct mutex ferry_mutex;
extern struct srcu_struct ferry_srcu;
extern struct ferry_entry __rcu *ferry_current;
extern const struct ferry_migrator ferry_kernel;

int ferry_kernel_copy(struct ferry_batch *batch);
DECLARE_STATIC_CALL(ferry_copy, ferry_kernel_copy);

struct ferry_entry *ferry_selected(void);
struct ferry_entry *ferry_switch(struct ferry_entry *entry);

/* stats.c */
extern const struct kobj_type ferry_entry_ktype;

static inline void ferry_count(struct ferry_entry *entry, enum ferry_stat stat,
			       s64 n)
{
	atomic64_add(n, &entry->stats[stat]);
}

/* limits.c */
extern unsigned long ferry_batch_min_bytes;
extern unsigned long ferry_batch_max_bytes;
extern unsigned long ferry_batch_max_us;

unsigned long ferry_limit(unsigned long rate, unsigned long max_us,
			  unsigned long max_bytes);
unsigned long ferry_limit_to(int nid);
unsigned long ferry_rate(int nid);
void ferry_rate_update(int nid, size_t bytes, u64 ns);
void ferry_gained_nothing(const struct ferry_batch *batch);
bool ferry_may_gain(const struct list_head *from);
void ferry_rates_forget(void);

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

/* registry.c */
int ferry_select(const char *name);
ssize_t ferry_list(char *buf);

#endif /* _MM_FERRY_INTERNAL_H */
