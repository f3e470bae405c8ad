/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LINUX_FERRY_H
#define _LINUX_FERRY_H

#include <linux/bits.h>
#include <linux/jump_label.h>
#include <linux/list.h>
#include <linux/migrate.h>
#include <linux/minmax.h>
#include <linux/mm_types.h>
#include <linux/sizes.h>
#include <linux/types.h>

struct attribute_group;
struct ferry_entry;
struct module;

/*
 * The most folios that one call copies: the base pages of 4 KiB that
 * mm/migrate.c locks at once without a migrator. Where it locks more, it calls
 * more than once.
 */
#define FERRY_BATCH_FOLIOS	512

/* A smaller batch may have been too small for a second CPU, if any was idle. */
#define FERRY_SHARED_BYTES	SZ_256K

/* The most base pages that compaction and kswapd collect for a migrator. */
#define FERRY_LIST_PAGES	512UL

/**
 * struct ferry_pair - a folio of a batch and its destination
 * @src:	source; locked, unmapped, its TLB entries flushed
 * @dst:	destination, of the same order; locked, not yet reachable
 * @offset:	offset of @src in the batch, seen as one run of bytes
 * @status:	set by the migrator: 0 if @dst holds the whole content of @src,
 *		a negative errno otherwise; -EINPROGRESS before the call
 */
struct ferry_pair {
	struct folio *src;
	struct folio *dst;
	size_t offset;
	int status;
};

/**
 * struct ferry_batch - folios to copy in one call
 * @reason:	reason of the migration
 * @nr:		pairs in use
 * @bytes:	sum of the folios' sizes
 * @src_nid:	node of the first source
 * @dst_nid:	node of the first destination
 * @max_us:	microseconds that the copy should take at most
 * @dma_bytes:	set by the migrator: bytes that DMA engines copied, for the
 *		events of the task's memory cgroup
 * @serial:	set by the migrator if the calling CPU copied alone, or if the
 *		migrator rejects the batch and expects to reject the next one.
 *		The next lists of folios that this CPU migrates then go without
 *		the migrator, see mm/ferry/limits.c
 * @pairs:	the folios; @offset ascends
 *
 * The caller of copy() owns the batch and every folio in it: when copy()
 * returns, the migrator no longer uses either. If a device may still write a
 * folio, the migrator fails that pair and keeps a reference on both of its
 * folios; the references make the move fail, too.
 */
struct ferry_batch {
	enum migrate_reason reason;
	unsigned int nr;
	size_t bytes;
	int src_nid;
	int dst_nid;
	unsigned long max_us;
	size_t dma_bytes;
	bool serial;
	struct ferry_pair pairs[FERRY_BATCH_FOLIOS];
};

/**
 * struct ferry_client - a caller that asks for a migrator, see client.c
 * @entry:	the migrator
 * @required:	folios that it does not copy must not migrate
 */
struct ferry_client {
	struct ferry_entry *entry;
	bool required;
};

/**
 * struct ferry_gather - how migrate_pages_batch() gathers its batches
 * @active:	the migrator that was selected when the call began may gain
 *		from it; nothing else is valid without it
 * @more:	the batch ended before all folios of the list were tried
 * @late:	its time ended it
 * @single:	the batch has one folio
 * @reason:	reason of the migration
 * @client:	the client, its migrator copies; or NULL: the selected one does
 * @nr:		destinations that were allocated for the batch
 * @bytes:	their size
 * @limit:	bytes that the batch may have
 * @get_new_folio: allocates a destination
 * @put_new_folio: frees it, or NULL
 * @private:	argument of both
 * @destinations: those that are not in use yet; their source is in migrate_info
 * @waited:	unmapped folios that the caller must put back: those whose lock
 *		a task waits for
 * @waited_dst:	their destinations, in the same order
 * @undone:	those folios after they were unlocked
 * @failed:	folio that get_new_folio() has failed for, or NULL
 * @walks:	of page tables, begun since the clock was read
 * @start:	time before the first folio was locked, 0 before that
 * @unlocked:	time at which @waited was filled
 *
 * See mm/ferry/gather.c. On the stack of migrate_pages_batch().
 */
struct ferry_gather {
#ifdef CONFIG_FERRY
	bool active;
	bool more;
	bool late;
	bool single;
	enum migrate_reason reason;
	const struct ferry_client *client;
	unsigned int nr;
	size_t bytes;
	size_t limit;
	new_folio_t *get_new_folio;
	free_folio_t *put_new_folio;
	unsigned long private;
	struct list_head destinations;
	struct list_head waited;
	struct list_head waited_dst;
	struct list_head undone;
	struct folio *failed;
	unsigned int walks;
	u64 start;
	u64 unlocked;
#endif
};

/**
 * struct ferry_slice - how a call with a limit divides its pages
 * @nr: pages of the current slice, 0 before the first
 */
struct ferry_slice {
	unsigned long nr;
};

/**
 * struct ferry_range - the part of an address space that is walked now
 * @next:	address at which the next part begins
 * @last:	the last queued folio that was counted, or NULL
 * @bytes:	size of those that were
 *
 * migrate_to_node() zeroes it before the first part, and sets @next to the end
 * of the address space before each.
 */
struct ferry_range {
	unsigned long next;
	struct list_head *last;
	size_t bytes;
};

/**
 * struct ferry_migrator - a way to copy a batch
 * @name:	word that selects it in /sys/kernel/mm/migration/
 * @owner:	module that contains @copy, pinned while the migrator is
 *		selected
 * @groups:	knobs, shown in /sys/kernel/mm/migration/@name/; may be NULL
 * @enable:	called before it is selected; may be NULL. Returns 0, or a
 *		negative errno that the selection fails with. May sleep and
 *		allocate.
 * @disable:	called after it was deselected, when no CPU is inside @copy; may
 *		be NULL. May sleep.
 * @copy:	copies the batch, with the memory tags of arm64's MTE, and sets
 *		the status of each pair. Returns 0, or
 *		a negative errno if it rejects the whole batch, with no status
 *		changed. Called in process context with all folios locked: may
 *		sleep, must not allocate memory, must not take a folio lock,
 *		must not wait for anything that may need memory reclaim.
 */
struct ferry_migrator {
	const char *name;
	struct module *owner;
	const struct attribute_group **groups;
	int (*enable)(void);
	void (*disable)(void);
	int (*copy)(struct ferry_batch *batch);
};

#ifdef CONFIG_FERRY

/*
 * A bit of the destination's migrate_info beside those of mm/migrate.c: the
 * copy phase has copied the content. It is the third low bit of an anon_vma
 * pointer, so CONFIG_FERRY depends on 64BIT.
 */
#define FERRY_FOLIO_COPIED	BIT(2)

DECLARE_STATIC_KEY_FALSE(ferry_enabled);
DECLARE_STATIC_KEY_FALSE(ferry_large_batches);
DECLARE_STATIC_KEY_FALSE(ferry_throttled);
DECLARE_STATIC_KEY_FALSE(ferry_long_lists);

void __ferry_copy_folios(const struct ferry_client *client,
			 struct list_head *src_folios,
			 struct list_head *dst_folios,
			 enum migrate_reason reason);
bool __ferry_copy_hugetlb(const struct ferry_client *client, struct folio *dst,
			  struct folio *src, enum migrate_reason reason);
const struct ferry_client *ferry_client_of(new_folio_t get_new_folio,
					   unsigned long private);
bool __ferry_batch_full(unsigned int nr_folios, unsigned long nr_pages,
			enum migrate_reason reason);
bool ferry_selects_any(enum migrate_reason reason);
bool ferry_may_gain(const struct list_head *from);
void ferry_want_long_lists(bool want);
bool __ferry_wants_long_lists(enum migrate_reason reason);
void ferry_count_pages(enum migrate_reason reason, unsigned int moved,
		       unsigned int failed);

unsigned long ferry_get_rate_limit(enum migrate_reason reason);
bool __ferry_must_skip(enum migrate_reason reason, unsigned long interval_us);
int __ferry_throttle(enum migrate_reason reason, struct mm_struct *mm);
unsigned long __ferry_slice_next(struct ferry_slice *slice,
				 enum migrate_reason reason, unsigned long nr);
bool __ferry_range_full(struct ferry_range *range, struct list_head *folios,
			unsigned long next);
int __ferry_range_begin(struct mm_struct *mm);

void __ferry_gather_init(struct ferry_gather *gather, new_folio_t get_new_folio,
			 free_folio_t put_new_folio, unsigned long private,
			 enum migrate_reason reason);
void __ferry_gather_begin(struct ferry_gather *gather, struct list_head *from);
bool __ferry_gather_ends(struct ferry_gather *gather, struct folio *src,
			 struct list_head *from,
			 struct list_head *unmap_folios);
struct folio *__ferry_get_destination(struct ferry_gather *gather,
				      struct folio *src);
bool __ferry_take_uncopied(struct ferry_gather *gather,
			   struct list_head *unmap_folios,
			   struct list_head *dst_folios);
bool __ferry_take_waited(struct ferry_gather *gather,
			 struct list_head *unmap_folios,
			 struct list_head *dst_folios);
bool __ferry_gather_next(struct ferry_gather *gather, struct list_head *from,
			 struct list_head *ret_folios);

/* For mm/ferry_runs, which locks folios before migrate_pages_batch() does. */
unsigned int ferry_gather_room(const struct ferry_gather *gather);
bool ferry_gather_expired(struct ferry_gather *gather);
void ferry_alloc_destinations(struct ferry_gather *gather,
			      struct list_head *from);
void ferry_add_destination(struct ferry_gather *gather, struct folio *src,
			   struct folio *dst);
struct folio *ferry_take_destination(struct ferry_gather *gather,
				     struct folio *src);
void ferry_count_locked(enum migrate_reason reason, s64 ns);

/**
 * ferry_batch_full() - check a batch against the limits of the migrator
 * @nr_folios:	folios gathered so far
 * @nr_pages:	their base pages
 * @max_pages:	the limit without an offload migrator, in base pages
 * @reason:	reason of the migration
 *
 * Context: any.
 * Return: true if no folio may be added to the batch.
 */
static inline bool ferry_batch_full(unsigned int nr_folios,
				    unsigned long nr_pages,
				    unsigned long max_pages,
				    enum migrate_reason reason)
{
	/* No batch is smaller than without a migrator. */
	if (nr_pages < max_pages)
		return false;
	if (static_branch_unlikely(&ferry_large_batches))
		return __ferry_batch_full(nr_folios, nr_pages, reason);
	return true;
}

/**
 * ferry_list_pages() - how many base pages to collect for migrate_pages()
 * @reason:	reason of the migration
 * @stock:	their number without a migrator
 * @max:	the most that the caller can use
 *
 * Offload migrators and runs gain more from a long list.
 *
 * Context: any.
 * Return: @stock, or up to FERRY_LIST_PAGES.
 */
static inline unsigned long ferry_list_pages(enum migrate_reason reason,
					     unsigned long stock,
					     unsigned long max)
{
	if (!static_branch_unlikely(&ferry_long_lists) ||
	    !__ferry_wants_long_lists(reason))
		return stock;
	return max(stock, min(max, FERRY_LIST_PAGES));
}

/**
 * ferry_gather_init() - begin a call of migrate_pages_batch()
 * @gather:	state of the call, not initialised
 * @from:	folios to migrate
 * @get_new_folio: allocates a destination
 * @put_new_folio: frees it, or NULL
 * @private:	argument of both
 * @reason:	reason of the migration
 *
 * Context: any.
 */
static inline void ferry_gather_init(struct ferry_gather *gather,
				     const struct list_head *from,
				     new_folio_t get_new_folio,
				     free_folio_t put_new_folio,
				     unsigned long private,
				     enum migrate_reason reason)
{
	gather->active = false;
	if (static_branch_unlikely(&ferry_enabled) &&
	    (ferry_client_of(get_new_folio, private) ||
	     (ferry_selects_any(reason) && ferry_may_gain(from))))
		__ferry_gather_init(gather, get_new_folio, put_new_folio,
				    private, reason);
}

static inline bool ferry_gather_active(const struct ferry_gather *gather)
{
	return static_branch_unlikely(&ferry_enabled) && gather->active;
}

/**
 * ferry_copy_folios() - copy the eligible folios of a batch before the move
 * @gather:	state of the call of migrate_pages_batch()
 * @src_folios:	locked, unmapped and flushed sources
 * @dst_folios:	their destinations, in the same order
 * @reason:	reason of the migration
 *
 * Sets FERRY_FOLIO_COPIED in the migrate_info of each destination whose content
 * is complete, and leaves all others to the move phase. Does nothing unless
 * @gather is active.
 *
 * Context: process context, folios of both lists locked. May sleep.
 */
static inline void ferry_copy_folios(const struct ferry_gather *gather,
				     struct list_head *src_folios,
				     struct list_head *dst_folios,
				     enum migrate_reason reason)
{
	if (ferry_gather_active(gather))
		__ferry_copy_folios(gather->client, src_folios, dst_folios,
				    reason);
}

/**
 * ferry_copy_hugetlb() - copy a hugetlb folio before the move
 * @dst:	destination
 * @src:	source, unmapped and flushed
 * @reason:	reason of the migration
 * @get_new_folio: callback of the migration
 * @private:	its argument
 *
 * A hugetlb folio is a batch of its own, and the migrator splits it.
 *
 * Context: process context, both folios locked. May sleep.
 * Return: 1 if @dst has the whole content, 0 if the move must copy it, -EIO if
 * the folio must not migrate.
 */
static inline int ferry_copy_hugetlb(struct folio *dst, struct folio *src,
				     enum migrate_reason reason,
				     new_folio_t get_new_folio,
				     unsigned long private)
{
	const struct ferry_client *client;

	if (!static_branch_unlikely(&ferry_enabled))
		return 0;
	client = ferry_client_of(get_new_folio, private);
	if (__ferry_copy_hugetlb(client, dst, src, reason))
		return 1;
	return client && client->required ? -EIO : 0;
}

/**
 * ferry_copy_required() - check whether the migrator must copy each folio
 * @gather: state of the call of migrate_pages_batch()
 *
 * Context: any.
 * Return: true if a folio that it did not copy must not migrate.
 */
static inline bool ferry_copy_required(const struct ferry_gather *gather)
{
	return ferry_gather_active(gather) && gather->client &&
	       gather->client->required;
}

/**
 * ferry_take_uncopied() - take out the folios that were required to be copied
 * @gather:	state of the call; receives them in @waited and @waited_dst
 * @unmap_folios: locked, unmapped and flushed sources
 * @dst_folios:	their destinations, in the same order
 *
 * Context: any.
 * Return: true if there are any. The caller must undo their migration.
 */
static inline bool ferry_take_uncopied(struct ferry_gather *gather,
				       struct list_head *unmap_folios,
				       struct list_head *dst_folios)
{
	return ferry_copy_required(gather) &&
	       __ferry_take_uncopied(gather, unmap_folios, dst_folios);
}

/**
 * ferry_gather_begin() - begin a batch: allocate its destinations
 * @gather:	state of the call
 * @from:	folios to migrate, none of them locked by the caller
 *
 * Context: process context. May sleep as get_new_folio() does.
 */
static inline void ferry_gather_begin(struct ferry_gather *gather,
				      struct list_head *from)
{
	if (ferry_gather_active(gather))
		__ferry_gather_begin(gather, from);
}

/**
 * ferry_gather_ends() - decide whether the batch ends before a folio
 * @gather:	state of the call
 * @src:	the next folio to unmap
 * @from:	folios to migrate; if the batch ends, @src becomes the first one
 * @unmap_folios: folios that are unmapped
 *
 * Context: any.
 * Return: true if the caller must go on with the move now.
 */
static inline bool ferry_gather_ends(struct ferry_gather *gather,
				     struct folio *src, struct list_head *from,
				     struct list_head *unmap_folios)
{
	return ferry_gather_active(gather) &&
	       __ferry_gather_ends(gather, src, from, unmap_folios);
}

/**
 * ferry_get_destination() - the destination of a folio
 * @gather:	state of the call
 * @src:	the folio, not locked by the caller
 * @get_new_folio: allocates it, if no migrator was selected in time
 * @private:	its argument
 *
 * Context: process context. May sleep as @get_new_folio does if no folio of the
 * batch is unmapped, or if no migrator is selected.
 * Return: the destination, or NULL if there is no memory.
 */
static inline struct folio *ferry_get_destination(struct ferry_gather *gather,
						  struct folio *src,
						  new_folio_t get_new_folio,
						  unsigned long private)
{
	if (ferry_gather_active(gather))
		return __ferry_get_destination(gather, src);
	return get_new_folio(src, private);
}

/**
 * ferry_take_waited() - take out the folios whose lock a task waits for
 * @gather:	state of the call; receives them in @waited and @waited_dst
 * @unmap_folios: folios whose move has failed
 * @dst_folios:	their destinations, in the same order
 *
 * Context: any.
 * Return: true if there are any. The caller must undo their migration and put
 * them in @gather->undone.
 */
static inline bool ferry_take_waited(struct ferry_gather *gather,
				     struct list_head *unmap_folios,
				     struct list_head *dst_folios)
{
	return ferry_gather_active(gather) &&
	       __ferry_take_waited(gather, unmap_folios, dst_folios);
}

/**
 * ferry_gather_next() - end a batch, and prepare the next one
 * @gather:	state of the call
 * @from:	receives the folios to migrate next
 * @ret_folios:	receives those that have failed, if others are next
 *
 * Context: process context, no folio locked. May sleep.
 * Return: true if there are folios to migrate.
 */
static inline bool ferry_gather_next(struct ferry_gather *gather,
				     struct list_head *from,
				     struct list_head *ret_folios)
{
	/* Even if the migrator was deselected: there may be destinations. */
	return unlikely(gather->active) &&
	       __ferry_gather_next(gather, from, ret_folios);
}

/**
 * ferry_must_skip() - check whether a scheme must not migrate now
 * @reason:	MR_DAMON
 * @interval_us: microseconds between two applications of the scheme
 *
 * For a caller that must not sleep in ferry_throttle().
 *
 * Context: any.
 * Return: true until the limit of the reason allows more.
 */
static inline bool ferry_must_skip(enum migrate_reason reason,
				   unsigned long interval_us)
{
	return static_branch_unlikely(&ferry_throttled) &&
	       __ferry_must_skip(reason, interval_us);
}

/**
 * ferry_throttle() - sleep until the limit of a reason allows more
 * @reason:	MR_SYSCALL
 * @mm:		address space that is migrated, whose mm_users has a reference
 *		of the caller; NULL if its death does not matter
 *
 * Context: process context, no lock held and no folio isolated. May sleep for
 * long.
 * Return: 0, or if the time has not come -EINTR for a fatal signal, or -ESRCH
 * if no process has @mm any more.
 */
static inline int ferry_throttle(enum migrate_reason reason,
				 struct mm_struct *mm)
{
	if (static_branch_unlikely(&ferry_throttled))
		return __ferry_throttle(reason, mm);
	return 0;
}

/**
 * ferry_slice_next() - how many of a call's pages to look for now
 * @slice:	the call, zeroed before its first slice
 * @reason:	MR_SYSCALL
 * @nr:		pages that are left
 *
 * To be followed by ferry_throttle().
 *
 * Context: any.
 * Return: @nr if there is no limit, 1 to @nr otherwise.
 */
static inline unsigned long ferry_slice_next(struct ferry_slice *slice,
					     enum migrate_reason reason,
					     unsigned long nr)
{
	if (static_branch_unlikely(&ferry_throttled))
		return __ferry_slice_next(slice, reason, nr);
	return nr;
}

/**
 * ferry_range_full() - decide whether a walk of page tables ends here
 * @range:	the part that is walked, or NULL for a caller without a limit
 * @folios:	those that the walk has queued, in their order
 * @next:	address behind the last entry that the walk looked at
 *
 * Context: any.
 * Return: true if MR_SYSCALL has a limit, and a slice is queued. The caller
 * must end the walk, migrate @folios, and go on at @range->next after
 * ferry_range_begin().
 */
static inline bool ferry_range_full(struct ferry_range *range,
				    struct list_head *folios,
				    unsigned long next)
{
	return static_branch_unlikely(&ferry_throttled) && range &&
	       __ferry_range_full(range, folios, next);
}

/**
 * ferry_range_begin() - wait before a part of an address space is walked
 * @mm: the address space, whose mm_users has a reference of the caller
 *
 * Context: process context, after lru_cache_disable(), no lock held and no
 * folio isolated. May sleep for long, with the LRU batches enabled.
 * Return: 0, -EINTR for a fatal signal, or -ESRCH if no process has @mm any
 * more.
 */
static inline int ferry_range_begin(struct mm_struct *mm)
{
	return static_branch_unlikely(&ferry_throttled) ?
	       __ferry_range_begin(mm) : 0;
}

int ferry_register(const struct ferry_migrator *migrator);
void ferry_unregister(const struct ferry_migrator *migrator);
struct ferry_client *ferry_client_open(const char *migrator, bool required);
void ferry_client_close(struct ferry_client *client);
int ferry_client_migrate(const struct ferry_client *client,
			 struct list_head *from, new_folio_t get_new_folio,
			 free_folio_t put_new_folio, unsigned long private,
			 enum migrate_mode mode, enum migrate_reason reason,
			 unsigned int *ret_succeeded);
unsigned int ferry_place_cpus(int nid, unsigned int *cpus, unsigned int max);
bool ferry_cpu_idle(unsigned int cpu);
void ferry_account_helpers(u64 ns);

#else /* !CONFIG_FERRY */

#define FERRY_FOLIO_COPIED	0

static inline void ferry_copy_folios(const struct ferry_gather *gather,
				     struct list_head *src_folios,
				     struct list_head *dst_folios,
				     enum migrate_reason reason)
{
}

static inline int ferry_copy_hugetlb(struct folio *dst, struct folio *src,
				     enum migrate_reason reason,
				     new_folio_t get_new_folio,
				     unsigned long private)
{
	return 0;
}

static inline bool ferry_copy_required(const struct ferry_gather *gather)
{
	return false;
}

static inline bool ferry_take_uncopied(struct ferry_gather *gather,
				       struct list_head *unmap_folios,
				       struct list_head *dst_folios)
{
	return false;
}

static inline bool ferry_batch_full(unsigned int nr_folios,
				    unsigned long nr_pages,
				    unsigned long max_pages,
				    enum migrate_reason reason)
{
	return nr_pages >= max_pages;
}

static inline unsigned long ferry_list_pages(enum migrate_reason reason,
					     unsigned long stock,
					     unsigned long max)
{
	return stock;
}

static inline void ferry_count_pages(enum migrate_reason reason,
				     unsigned int moved, unsigned int failed)
{
}

static inline bool ferry_must_skip(enum migrate_reason reason,
				   unsigned long interval_us)
{
	return false;
}

static inline int ferry_throttle(enum migrate_reason reason,
				 struct mm_struct *mm)
{
	return 0;
}

static inline unsigned long ferry_slice_next(struct ferry_slice *slice,
					     enum migrate_reason reason,
					     unsigned long nr)
{
	return nr;
}

static inline bool ferry_range_full(struct ferry_range *range,
				    struct list_head *folios,
				    unsigned long next)
{
	return false;
}

static inline int ferry_range_begin(struct mm_struct *mm)
{
	return 0;
}

static inline void ferry_gather_init(struct ferry_gather *gather,
				     const struct list_head *from,
				     new_folio_t get_new_folio,
				     free_folio_t put_new_folio,
				     unsigned long private,
				     enum migrate_reason reason)
{
}

static inline void ferry_gather_begin(struct ferry_gather *gather,
				      struct list_head *from)
{
}

static inline bool ferry_gather_ends(struct ferry_gather *gather,
				     struct folio *src, struct list_head *from,
				     struct list_head *unmap_folios)
{
	return false;
}

static inline struct folio *ferry_get_destination(struct ferry_gather *gather,
						  struct folio *src,
						  new_folio_t get_new_folio,
						  unsigned long private)
{
	return get_new_folio(src, private);
}

static inline bool ferry_take_waited(struct ferry_gather *gather,
				     struct list_head *unmap_folios,
				     struct list_head *dst_folios)
{
	return false;
}

static inline bool ferry_gather_next(struct ferry_gather *gather,
				     struct list_head *from,
				     struct list_head *ret_folios)
{
	return false;
}

#endif /* CONFIG_FERRY */
#endif /* _LINUX_FERRY_H */
