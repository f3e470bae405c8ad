// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: The checker
 *
 * The rule: until its flush, a deferred PTE is given no write permission and maps no other
 * page, nobody writes the file behind it nor takes the page from it, and its source is
 * neither freed nor failed. And the other way round: who drains the lists of free pages
 * leaves no source waiting that waited before. The checker remembers each deferred PTE, with
 * the stack of who deferred it, and looks where these things are done, in the page table
 * helpers, the page allocator, the page cache and the handling of failed memory, not where
 * migrc has its hooks: a hook that is missing shows. Of drains only that of drain_all_pages()
 * and its like is looked at, and not what a batch under way still holds.
 *
 * It believes in no generation of mm.c. What was flushed it hears from where a flush is
 * done: for a whole space from migrc, for an address from those who change single PTEs. Of
 * what reclaim unmaps the flush is done later, with that of other pages (batched); until
 * then the record lives on. Meanwhile reclaim allows, without migrc, too, that the page
 * leaves its file, that a page of tmpfs is marked dirty because it cannot be swapped out,
 * and that a fault maps another page. Not that the same page becomes writable.
 *
 * It errs by forgetting: a record that is overwritten because the table is full is not
 * looked at any more. And it takes a folio that is marked dirty for one that was written,
 * which some file systems' defragmentation and garbage collection do not mean. And of a page
 * that is deferred in the moment in which it fails it complains, though nobody could help it.
 *
 * Life cycle: records are a ring, and the oldest is overwritten, unless there is one of the
 * same address that was flushed.
 *
 * Lock order: page table lock -> migrc_check_lock, with interrupts off. migrc_waits_since is
 * written under the quarantine's lock, and read without.
 */

#include <kunit/static_stub.h>
#include <linux/fs.h>
#include <linux/hash.h>
#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/pagemap.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/stackdepot.h>
#include <linux/stacktrace.h>
#include <linux/vmalloc.h>

#include "internal.h"

#define MIGRC_RECORDS	BIT(16)
#define MIGRC_HASH_BITS	14
#define MIGRC_STACK	16
/* Enough to learn from, and no flood while a fault is injected. */
#define MIGRC_REPORTS	4

/**
 * struct migrc_record - a PTE whose flush was deferred
 * @by_addr:	in migrc_by_addr
 * @by_src:	in migrc_by_src
 * @by_dst:	in migrc_by_dst, once @dst is known
 * @in_batch:	in migrc_batched, while @flusher is not NULL
 * @flusher:	task whose next batched flush is the one of @addr, or NULL
 * @mm:		address space; may be gone when @live is false
 * @addr:	address, page aligned
 * @src:	PFN that TLBs may still know
 * @dst:	PFN that the PTE maps since, 0 before it does
 * @born:	checker's clock
 * @stack:	who deferred it
 * @live:	false once the address was flushed
 */
struct migrc_record {
	struct hlist_node by_addr;
	struct hlist_node by_src;
	struct hlist_node by_dst;
	struct hlist_node in_batch;
	struct task_struct *flusher;
	struct mm_struct *mm;
	unsigned long addr;
	unsigned long src;
	unsigned long dst;
	s64 born;
	depot_stack_handle_t stack;
	bool live;
};

/* A bit for each enum migrc_fault, and for each enum migrc_cause, that a test leaves out. */
unsigned long migrc_faults;

atomic_t migrc_violations;

static atomic_t migrc_reports_left = ATOMIC_INIT(MIGRC_REPORTS);
static atomic64_t migrc_check_clock = ATOMIC64_INIT(1);
static DEFINE_SPINLOCK(migrc_check_lock);
static struct migrc_record *migrc_records;
static unsigned int migrc_next;
static struct hlist_head migrc_by_addr[1 << MIGRC_HASH_BITS];
static struct hlist_head migrc_by_src[1 << MIGRC_HASH_BITS];
static struct hlist_head migrc_by_dst[1 << MIGRC_HASH_BITS];
static HLIST_HEAD(migrc_batched);
/* The checker's clock when the oldest source came that is in quarantine. */
static s64 migrc_waits_since = S64_MAX;

static struct hlist_head *addr_head(const struct mm_struct *mm, unsigned long addr)
{
	return &migrc_by_addr[hash_long((unsigned long)mm ^ (addr >> PAGE_SHIFT),
					MIGRC_HASH_BITS)];
}

static struct hlist_head *pfn_head(struct hlist_head *heads, unsigned long pfn)
{
	return &heads[hash_long(pfn, MIGRC_HASH_BITS)];
}

static bool mm_has_records(const struct mm_struct *mm)
{
	return atomic64_read(&mm->migrc.noted) >= atomic64_read(&mm->migrc.checked);
}

/* A space that has gone has taken its records along: migrc_check_exit(). */
static bool record_is_live(const struct migrc_record *record)
{
	return record->live && record->born >= atomic64_read(&record->mm->migrc.checked);
}

/* Not static for the sake of tests, which want to hear it instead. */
void migrc_check_report(const char *what, const struct migrc_record *record)
{
	KUNIT_STATIC_STUB_REDIRECT(migrc_check_report, what, record);

	atomic_inc(&migrc_violations);
	if (atomic_dec_return(&migrc_reports_left) < 0)
		return;
	pr_err("BUG: migrc: %s\n", what);
	if (record) {
		pr_err("address %#lx, source pfn %#lx, now pfn %#lx, deferred by:\n",
		       record->addr, record->src, record->dst);
		stack_depot_print(record->stack);
	}
	pr_err("broken by:\n");
	dump_stack();
	pr_err("migrc: end of report\n");
}

/**
 * migrc_check_report_rearm() - print the next violations again
 *
 * Context: any.
 */
void migrc_check_report_rearm(void)
{
	atomic_set(&migrc_reports_left, MIGRC_REPORTS);
}

/**
 * migrc_check_init() - a new address space has no records
 * @mm: the address space
 *
 * Context: any.
 */
void migrc_check_init(struct mm_struct *mm)
{
	atomic64_set(&mm->migrc.noted, 0);
	atomic64_set(&mm->migrc.checked, atomic64_inc_return(&migrc_check_clock));
}

static void record_drop(struct mm_struct *mm, unsigned long addr)
{
	struct migrc_record *record;

	hlist_for_each_entry(record, addr_head(mm, addr), by_addr) {
		if (record->mm == mm && record->addr == addr)
			record->live = false;
	}
}

static void record_drop_range(struct mm_struct *mm, unsigned long start, unsigned long end)
{
	unsigned int i;

	for (i = 0; i < MIGRC_RECORDS; i++) {
		struct migrc_record *record = &migrc_records[i];

		if (record->mm == mm && record->addr >= start && record->addr < end)
			record->live = false;
	}
}

/**
 * migrc_check_exit() - an address space is going, and its records with it
 * @mm: the address space
 *
 * Context: any.
 */
void migrc_check_exit(struct mm_struct *mm)
{
	unsigned long flags;

	if (!migrc_records || !atomic64_read(&mm->migrc.noted))
		return;
	spin_lock_irqsave(&migrc_check_lock, flags);
	record_drop_range(mm, 0, ULONG_MAX);
	spin_unlock_irqrestore(&migrc_check_lock, flags);
}

static depot_stack_handle_t save_stack(void)
{
	unsigned long entries[MIGRC_STACK];
	unsigned int nr = stack_trace_save(entries, ARRAY_SIZE(entries), 2);

	return stack_depot_save(entries, nr, GFP_NOWAIT);
}

/* An address that is deferred again and again keeps to one record, or its list would grow long. */
static struct migrc_record *free_record(struct mm_struct *mm, unsigned long addr)
{
	struct migrc_record *record;

	hlist_for_each_entry(record, addr_head(mm, addr), by_addr) {
		if (record->mm == mm && record->addr == addr && !record_is_live(record))
			return record;
	}
	return &migrc_records[migrc_next++ % MIGRC_RECORDS];
}

static void record_add(struct mm_struct *mm, unsigned long addr, unsigned long pfn)
{
	depot_stack_handle_t stack = save_stack();
	struct migrc_record *record;
	unsigned long flags;

	spin_lock_irqsave(&migrc_check_lock, flags);
	record = free_record(mm, addr);
	if (record->mm) {
		hlist_del_init(&record->by_addr);
		hlist_del_init(&record->by_src);
		hlist_del_init(&record->by_dst);
		hlist_del_init(&record->in_batch);
	}
	*record = (struct migrc_record) {
		.mm = mm,
		.addr = addr,
		.src = pfn,
		.born = atomic64_read(&migrc_check_clock),
		.stack = stack,
		.live = true,
	};
	migrc_advance(&mm->migrc.noted, record->born);
	hlist_add_head(&record->by_addr, addr_head(mm, addr));
	hlist_add_head(&record->by_src, pfn_head(migrc_by_src, pfn));
	spin_unlock_irqrestore(&migrc_check_lock, flags);
}

static void check_file(const struct folio *folio)
{
	if (!folio_test_anon(folio) && folio->mapping &&
	    inode_is_open_for_write(folio->mapping->host))
		migrc_check_report("deferred although the file is open for writing", NULL);
}

/**
 * migrc_check_pending() - a PTE is deferred although a flush is pending
 *
 * Only the one who decides can tell: a moment later another flush may be pending, of other PTEs.
 *
 * Context: any.
 * Return: true.
 */
bool migrc_check_pending(void)
{
	migrc_check_report("deferred although a flush is pending", NULL);
	return true;
}

/**
 * migrc_check_deferred() - remember a deferred PTE
 * @mm:		address space
 * @addr:	address
 * @pte:	what it was
 *
 * Context: under the PTE's lock.
 */
void migrc_check_deferred(struct mm_struct *mm, unsigned long addr, pte_t pte)
{
	if (!migrc_records)
		return;
	check_file(page_folio(pte_page(pte)));
	record_add(mm, addr & PAGE_MASK, pte_pfn(pte));
}

/**
 * migrc_check_begin() - a flush of whole address spaces begins, or a drain
 *
 * Context: any.
 * Return: the checker's clock, for migrc_check_flushed() and migrc_check_drained().
 */
s64 migrc_check_begin(void)
{
	return atomic64_inc_return(&migrc_check_clock);
}

/**
 * migrc_check_flushed() - a whole address space was flushed
 * @mm:		the address space
 * @start:	of migrc_check_begin()
 *
 * Context: any.
 */
void migrc_check_flushed(struct mm_struct *mm, s64 start)
{
	migrc_advance(&mm->migrc.checked, start);
}

/**
 * migrc_check_batched() - the flush of a range will be one with that of others
 * @mm:		address space
 * @start:	first address
 * @end:	the one after the last
 *
 * Context: any; by the task that will flush.
 */
void migrc_check_batched(struct mm_struct *mm, unsigned long start, unsigned long end)
{
	struct migrc_record *record;
	unsigned long flags, addr;

	if (!migrc_records || !mm_has_records(mm))
		return;
	spin_lock_irqsave(&migrc_check_lock, flags);
	for (addr = start & PAGE_MASK; addr < end; addr += PAGE_SIZE) {
		hlist_for_each_entry(record, addr_head(mm, addr), by_addr) {
			if (record->mm != mm || record->addr != addr ||
			    record->flusher || !record_is_live(record))
				continue;
			record->flusher = current;
			hlist_add_head(&record->in_batch, &migrc_batched);
		}
	}
	spin_unlock_irqrestore(&migrc_check_lock, flags);
}

/**
 * migrc_check_batch_flushed() - the current task has flushed what it had batched
 *
 * Context: any.
 */
void migrc_check_batch_flushed(void)
{
	struct migrc_record *record;
	struct hlist_node *next;
	unsigned long flags;

	if (hlist_empty(&migrc_batched))
		return;
	spin_lock_irqsave(&migrc_check_lock, flags);
	hlist_for_each_entry_safe(record, next, &migrc_batched, in_batch) {
		if (record->flusher != current)
			continue;
		hlist_del_init(&record->in_batch);
		record->flusher = NULL;
		record->live = false;
	}
	spin_unlock_irqrestore(&migrc_check_lock, flags);
}

/**
 * migrc_check_range_flushed() - the flush of a range is done
 * @mm:		address space
 * @start:	first address
 * @end:	the one after the last; not after @start where struct mmu_gather means all, as
 *		when two of them meet
 *
 * Context: any.
 */
void migrc_check_range_flushed(struct mm_struct *mm, unsigned long start,
			       unsigned long end)
{
	unsigned long flags, addr;

	if (!migrc_records || !mm_has_records(mm))
		return;
	spin_lock_irqsave(&migrc_check_lock, flags);
	if (start >= end) {
		record_drop_range(mm, 0, ULONG_MAX);
	} else if (end - start > PMD_SIZE) {
		record_drop_range(mm, start, end);
	} else {
		for (addr = start & PAGE_MASK; addr < end; addr += PAGE_SIZE)
			record_drop(mm, addr);
	}
	spin_unlock_irqrestore(&migrc_check_lock, flags);
}

static const struct migrc_record *any_record(const struct mm_struct *mm)
{
	unsigned int i;

	for (i = 0; i < MIGRC_RECORDS; i++) {
		if (migrc_records[i].mm == mm && record_is_live(&migrc_records[i]))
			return &migrc_records[i];
	}
	return NULL;
}

/**
 * migrc_check_assert_flushed() - after migrc_flush() nothing may be owed
 * @mm:		address space
 * @cause:	as given to migrc_flush()
 *
 * For those who do what no PTE shows.
 *
 * Context: as migrc_flush().
 */
void migrc_check_assert_flushed(struct mm_struct *mm, unsigned int cause)
{
	const struct migrc_record *record;
	unsigned long flags;

	/* Others may defer meanwhile, in other tables. Only who skips can be sure. */
	if (!migrc_should_fail(cause) && !migrc_should_fail(MIGRC_FAIL_GENERATION))
		return;
	if (!migrc_records || !mm_has_records(mm))
		return;
	spin_lock_irqsave(&migrc_check_lock, flags);
	record = any_record(mm);
	spin_unlock_irqrestore(&migrc_check_lock, flags);
	if (record)
		migrc_check_report("an address space goes on with a flush that it owes",
				     record);
}

/* The first PTE that is set after the deferral shows where the folio went. */
static void record_set_dst(struct migrc_record *record, unsigned long pfn)
{
	record->dst = pfn;
	hlist_add_head(&record->by_dst, pfn_head(migrc_by_dst, pfn));
}

static const char *check_addr(struct mm_struct *mm, unsigned long addr, pte_t pte,
			      struct migrc_record **found)
{
	struct migrc_record *record;

	hlist_for_each_entry(record, addr_head(mm, addr), by_addr) {
		if (record->mm != mm || record->addr != addr || !record_is_live(record))
			continue;
		/* Reclaim allows another page, see DOC. */
		if (record->flusher && record->dst != pte_pfn(pte))
			continue;
		*found = record;
		if (pte_write(pte))
			return "a PTE becomes writable before its flush";
		if (!record->dst)
			record_set_dst(record, pte_pfn(pte));
		/* Migration may take it on, and leaves another record. */
		else if (record->dst != pte_pfn(pte) && !current->migrc_batch)
			return "a PTE maps another page before its flush";
	}
	return NULL;
}

static const char *check_dst(unsigned long pfn, bool batched, struct migrc_record **found)
{
	struct migrc_record *record;

	hlist_for_each_entry(record, pfn_head(migrc_by_dst, pfn), by_dst) {
		/* Where a folio was not moved after all, its old place is the right one. */
		if (record->dst != pfn || record->src == pfn || !record_is_live(record))
			continue;
		if (record->flusher && !batched)
			continue;
		*found = record;
		return "a page becomes writable that others read in its old place";
	}
	return NULL;
}

/**
 * migrc_check_set() - PTEs are being set
 * @mm:		address space
 * @addr:	first address
 * @pte:	first PTE
 * @nr:		how many, of consecutive pages
 *
 * Context: under the lock of the PTEs, or before anybody can see them.
 */
void migrc_check_set(struct mm_struct *mm, unsigned long addr, pte_t pte, unsigned int nr)
{
	struct migrc_record *record = NULL;
	const char *what = NULL;
	unsigned long flags;

	if (!migrc_records || !pte_present(pte))
		return;
	if (!pte_write(pte) && !mm_has_records(mm))
		return;
	spin_lock_irqsave(&migrc_check_lock, flags);
	for (; nr && !what; nr--, addr += PAGE_SIZE, pte = pte_next_pfn(pte)) {
		what = check_addr(mm, addr & PAGE_MASK, pte, &record);
		if (!what && pte_write(pte))
			what = check_dst(pte_pfn(pte), true, &record);
	}
	spin_unlock_irqrestore(&migrc_check_lock, flags);
	if (what)
		migrc_check_report(what, record);
}

/* The record of a PTE by which TLBs still know this page as its source. */
static struct migrc_record *source_record(unsigned long pfn)
{
	struct migrc_record *record, *found = NULL;
	struct hlist_head *head;
	unsigned long flags;

	if (!migrc_records || !READ_ONCE(migrc_next))
		return NULL;
	head = pfn_head(migrc_by_src, pfn);
	if (hlist_empty(head))
		return NULL;
	spin_lock_irqsave(&migrc_check_lock, flags);
	hlist_for_each_entry(record, head, by_src) {
		/* As in check_dst(): what was not moved after all is no old place. */
		if (record->src == pfn && record->dst != pfn && record_is_live(record))
			found = record;
	}
	spin_unlock_irqrestore(&migrc_check_lock, flags);
	return found;
}

/**
 * migrc_check_free() - pages are being freed
 * @page:	the first
 * @order:	how many, as a power of two
 *
 * Context: any.
 */
void migrc_check_free(const struct page *page, unsigned int order)
{
	unsigned long pfn = page_to_pfn(page), end = pfn + (1UL << order);
	struct migrc_record *record = NULL;

	for (; pfn < end && !record; pfn++)
		record = source_record(pfn);
	if (record)
		migrc_check_report("a page is freed before its flush", record);
}

/* The record of a PTE that maps a page of @folio, or, if @batched, did until it was that. */
static struct migrc_record *record_of(const struct folio *folio, bool batched)
{
	unsigned long pfn = folio_pfn(folio), end = pfn + folio_nr_pages(folio), flags;
	struct migrc_record *record = NULL;

	if (!migrc_records || !READ_ONCE(migrc_next))
		return NULL;
	spin_lock_irqsave(&migrc_check_lock, flags);
	for (; pfn < end && !record; pfn++)
		check_dst(pfn, batched, &record);
	spin_unlock_irqrestore(&migrc_check_lock, flags);
	return record;
}

/**
 * migrc_check_written() - the content of a folio of the page cache has changed
 * @folio: the folio
 *
 * Context: any.
 */
void migrc_check_written(const struct folio *folio)
{
	struct migrc_record *record;

	if (folio_test_anon(folio))
		return;
	/* tmpfs marks what it cannot swap out, see DOC. */
	record = record_of(folio, !folio_test_swapbacked(folio));
	if (record)
		migrc_check_report("a file is written before the flush of its page", record);
}

/**
 * migrc_check_removed() - a folio leaves the page cache, and another may take its slot
 * @folio: the folio
 *
 * Context: any.
 */
void migrc_check_removed(const struct folio *folio)
{
	struct migrc_record *record = record_of(folio, false);

	if (record)
		migrc_check_report("a file loses a page before its flush", record);
}

/**
 * migrc_check_failed() - a page of memory is marked as failed, or counted as given up
 * @pfn: its number
 *
 * Context: any.
 */
void migrc_check_failed(unsigned long pfn)
{
	struct migrc_record *record = source_record(pfn);

	if (record)
		migrc_check_report("a page fails that TLBs still know", record);
}

/**
 * migrc_check_waits() - the quarantine is empty no more, or again
 * @waits: a first folio is in it
 *
 * Context: under the lock of the quarantine.
 */
void migrc_check_waits(bool waits)
{
	WRITE_ONCE(migrc_waits_since, waits ? atomic64_read(&migrc_check_clock) : S64_MAX);
}

/**
 * migrc_check_drained() - the lists of free pages were drained
 * @start: of migrc_check_begin(), before they were
 *
 * Context: process context.
 */
void migrc_check_drained(s64 start)
{
	/* __migrc_drain() may have found no room taken: that was given back after this changed. */
	smp_rmb();
	if (READ_ONCE(migrc_waits_since) < start)
		migrc_check_report("a page waits that whoever drained wants", NULL);
}

static int __init migrc_check_start(void)
{
	int err = stack_depot_init();

	if (err)
		return err;
	migrc_records = vcalloc(MIGRC_RECORDS, sizeof(*migrc_records));
	return migrc_records ? 0 : -ENOMEM;
}
subsys_initcall(migrc_check_start);
