/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MM_FERRY_INTERNAL_H
#define _MM_FERRY_INTERNAL_H

#include <linux/ferry.h>
#include <linux/kobject.h>
#include <linux/mm.h>
#include <linux/srcu.h>

/* What mm/migrate.c locks at once without us: its NR_MAX_BATCHED_MIGRATION. */
#ifdef CONFIG_TRANSPARENT_HUGEPAGE
#define FERRY_STOCK_PAGES	((unsigned long)HPAGE_PMD_NR)
#else
#define FERRY_STOCK_PAGES	512UL
#endif
#define FERRY_STOCK_BYTES	(FERRY_STOCK_PAGES << PAGE_SHIFT)
/* The most folios that are locked at once with us: no fewer than that. */
#define FERRY_LOCKED_FOLIOS	max_t(unsigned long, FERRY_BATCH_FOLIOS, FERRY_STOCK_PAGES)

/* What is counted for each migrator; the names are in stats.c. */
enum ferry_stat {
	FERRY_BATCHES,
	FERRY_FOLIOS,
	FERRY_BYTES,
	FERRY_COPY_NS,
	FERRY_FALLBACKS,
	FERRY_REFUSED_KIND,
	FERRY_REFUSED_PINNED,
	FERRY_REFUSED_SMALL,
	FERRY_REFUSED_BUSY,
	FERRY_REFUSED_MIGRATOR,
	FERRY_NR_STATS,
};

/**
 * struct ferry_entry - a registered migrator
 * @kobj:	its directory in stats/; the entry is freed when it is released
 * @knobs:	its directory of knobs, or NULL
 * @ops:	the migrator
 * @list:	in ferry_migrators, under ferry_mutex
 * @rate:	recent copy rate in bytes per microsecond, 0 before the first batch
 * @stats:	counters
 */
struct ferry_entry {
	struct kobject kobj;
	struct kobject *knobs;
	const struct ferry_migrator *ops;
	struct list_head list;
	unsigned long rate;
	atomic64_t stats[FERRY_NR_STATS];
};

/* core.c */
extern struct srcu_struct ferry_srcu;
extern const struct ferry_migrator ferry_kernel;

struct ferry_entry *ferry_selected(void);
void ferry_limit_refresh(void);
int ferry_copy(struct ferry_batch *batch);
int ferry_select(const char *name);
ssize_t ferry_list(char *buf);

/* batch.c */
bool ferry_eligible(struct folio *dst, struct folio *src, enum ferry_stat *cause);
int ferry_batches_alloc(void);
struct ferry_batch *ferry_batch_get(void);
void ferry_batch_put(struct ferry_batch *batch);

/* policy.c */
extern const struct attribute_group ferry_policy_group;

unsigned long ferry_limit(unsigned long rate, unsigned long stall_us,
			  unsigned long max_bytes);
bool ferry_batch_small(const struct ferry_batch *batch);
void ferry_rate_update(struct ferry_entry *entry, size_t bytes, u64 ns);
void ferry_rate_forget(struct ferry_entry *entry, const struct ferry_batch *batch);
void ferry_limit_update(const struct ferry_entry *entry);

/* stats.c */
extern const struct kobj_type ferry_entry_ktype;

static inline void ferry_count(struct ferry_entry *entry, enum ferry_stat stat,
			       s64 n)
{
	atomic64_add(n, &entry->stats[stat]);
}

/* sysfs.c */
int ferry_sysfs_add(struct ferry_entry *entry);
void ferry_sysfs_remove(struct ferry_entry *entry);
bool ferry_sysfs_taken(const char *name);
int ferry_sysfs_init(void);

#endif /* _MM_FERRY_INTERNAL_H */
