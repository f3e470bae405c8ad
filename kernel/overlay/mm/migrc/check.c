// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: The checker
 *
 * The rule: until the flush of a deferred PTE, the PTE is given no write
 * permission and maps no other page, its file is not written and does not lose
 * the page, and its source page is neither freed nor poisoned. Also, code that
 * drains the lists of free pages leaves no source in quarantine that was there
 * before. The checker records each deferred PTE, with the stack of its
 * deferral. It checks the places where these things are done, in the page table
 * helpers, the page allocator, the page cache and the handling of failed
 * memory, not the places where migrc has its hooks, so it detects a missing
 * hook. Of drains it checks only drain_all_pages() and similar, and not the
 * sources of a batch in progress.
 *
 * The rule is one of single PTEs, so only a record of each PTE can check it. An
 * assert on the generation of an mm or of a page table cannot: while a flush is
 * pending, each first touch of anonymous memory makes another PTE of the same
 * table writable. So the checker is the assert of a DEBUG_VM kernel, by default
 * wherever such a kernel checks its page tables.
 *
 * The checker does not rely on the generations in mm.c. The code that flushes
 * tells it of the flush: migrc for a whole mm, and the code that changes single
 * PTEs for an address. When reclaim unmaps a page, the flush is done later,
 * together with that of other pages (batched), and the record remains until
 * then. Until that flush reclaim may, with and without migrc, remove the page
 * from its file, mark a page of tmpfs dirty because it cannot be swapped out,
 * and a fault may map another page. The same page may not become writable. The
 * same holds while an mmu_gather of the address space has not flushed yet.
 * Migration may map another page, if it has deferred the flush of the last one.
 *
 * Limits:
 *
 *   - A record that is overwritten because the table is full is no longer
 *     checked, nor are the others of its address.
 *   - A folio that is marked dirty counts as written, but the defragmentation
 *     and garbage collection of some file systems mark folios without a write.
 *   - If a page is deferred at the moment at which it fails, the checker
 *     reports it, although no code could prevent that.
 *   - It does not see that mprotect() returns without a flush: the PTE may have
 *     had its protection before.
 *
 * Life cycle: records are a ring. A new record overwrites the oldest one,
 * unless a flushed record of the same address exists.
 *
 * Locking: migrc_check_lock protects the records. Page table lock ->
 * migrc_check_lock, with interrupts off.
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

#define MIGRC_HASH_BITS	14
#define MIGRC_STACK	16
/* Enough to debug, and no flood of messages while a fault is injected. */
#define MIGRC_REPORTS	4

/**
 * struct migrc_record - a PTE whose flush was deferred
 * @by_addr:	in migrc_by_addr
 * @by_src:	in migrc_by_src
 * @by_dst:	in migrc_by_dst, once @dst is known
 * @in_batch:	in migrc_batched, while @flusher is not NULL
 * @flusher:	task whose next batched flush includes @addr, or NULL
 * @mm:		address space; may be gone when @live is false
 * @addr:	address, page aligned
 * @src:	PFN that TLBs may still map
 * @dst:	PFN that the PTE maps since then, 0 before the PTE is set
 * @born:	checker's clock at the deferral
 * @stack:	stack of the deferral
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

/* A bit for each enum migrc_fault or migrc_cause that a test leaves out. */
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

static struct hlist_head *addr_head(const struct mm_struct *mm,
				    unsigned long addr)
{
	unsigned long key = (unsigned long)mm ^ (addr >> PAGE_SHIFT);

	return &migrc_by_addr[hash_long(key, MIGRC_HASH_BITS)];
}

static struct hlist_head *pfn_head(struct hlist_head *heads, unsigned long pfn)
{
	return &heads[hash_long(pfn, MIGRC_HASH_BITS)];
}

static bool mm_has_records(const struct mm_struct *mm)
{
	return atomic64_read(&mm->migrc.noted) >=
	       atomic64_read(&mm->migrc.checked);
}

/* @checked is what mm->migrc.checked was at some time. */
static bool record_was_live(const struct migrc_record *record, s64 checked)
{
	return record->live && record->born >= checked;
}

/* migrc_check_exit() ends the records of an mm, so @mm is valid if @live. */
static bool record_is_live(const struct migrc_record *record)
{
	return record->live &&
	       record_was_live(record,
			       atomic64_read(&record->mm->migrc.checked));
}

/* Not static, because the KUnit tests replace it to count the reports. */
void migrc_check_report(const char *what, const struct migrc_record *record)
{
	KUNIT_STATIC_STUB_REDIRECT(migrc_check_report, what, record);

	atomic_inc(&migrc_violations);
	if (atomic_dec_return(&migrc_reports_left) < 0)
		return;
	pr_err("BUG: migrc: %s\n", what);
	if (record) {
		pr_err("address %#lx, source pfn %#lx, pfn %#lx, stack:\n",
		       record->addr, record->src, record->dst);
		stack_depot_print(record->stack);
	}
	pr_err("broken by:\n");
	dump_stack();
	pr_err("migrc: end of report\n");
}

/**
 * migrc_check_report_rearm() - print the next MIGRC_REPORTS violations
 *
 * Context: any.
 */
void migrc_check_report_rearm(void)
{
	atomic_set(&migrc_reports_left, MIGRC_REPORTS);
}

/**
 * migrc_check_init() - initialise a new address space: it has no records
 * @mm: the address space
 *
 * Context: any.
 */
void migrc_check_init(struct mm_struct *mm)
{
	atomic64_set(&mm->migrc.noted, 0);
	atomic64_set(&mm->migrc.checked,
		     atomic64_inc_return(&migrc_check_clock));
}

static void record_drop(struct mm_struct *mm, unsigned long addr)
{
	struct migrc_record *record;

	hlist_for_each_entry(record, addr_head(mm, addr), by_addr) {
		if (record->mm == mm && record->addr == addr)
			record->live = false;
	}
}

static void record_drop_range(struct mm_struct *mm, unsigned long start,
			      unsigned long end)
{
	unsigned int i;

	for (i = 0; i < MIGRC_RECORDS; i++) {
		struct migrc_record *record = &migrc_records[i];

		if (record->mm == mm && record->addr >= start &&
		    record->addr < end)
			record->live = false;
	}
}

/**
 * migrc_check_exit() - end the records of an address space that exits
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

/*
 * An address that is deferred repeatedly reuses its record, because otherwise
 * its hash list would grow long.
 */
static struct migrc_record *free_record(struct mm_struct *mm,
					unsigned long addr)
{
	struct migrc_record *record;

	hlist_for_each_entry(record, addr_head(mm, addr), by_addr) {
		if (record->mm == mm && record->addr == addr &&
		    !record_is_live(record))
			return record;
	}
	return &migrc_records[migrc_next++ % MIGRC_RECORDS];
}

static void record_add(struct mm_struct *mm, unsigned long addr,
		       unsigned long pfn)
{
	unsigned long entries[MIGRC_STACK];
	unsigned int nr = stack_trace_save(entries, ARRAY_SIZE(entries), 1);
	depot_stack_handle_t stack = stack_depot_save(entries, nr, GFP_NOWAIT);
	struct migrc_record *record;
	unsigned long flags;

	spin_lock_irqsave(&migrc_check_lock, flags);
	record = free_record(mm, addr);
	if (record->mm) {
		/* migrated_again() needs the later ones of an address. */
		if (record_is_live(record))
			record_drop(record->mm, record->addr);
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

/**
 * migrc_check_pending() - report a deferral while another flush is pending
 *
 * The code that decides on the deferral calls this, because a moment later
 * another flush may be pending, of other PTEs.
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
 * migrc_check_deferred() - record a deferred PTE
 * @mm:		address space
 * @addr:	address
 * @pte:	its value before
 *
 * Context: under the PTE's lock.
 */
void migrc_check_deferred(struct mm_struct *mm, unsigned long addr, pte_t pte)
{
	const struct folio *folio;

	if (!migrc_records)
		return;
	folio = page_folio(pte_page(pte));
	if (!folio_test_anon(folio) && folio->mapping &&
	    inode_is_open_for_write(folio->mapping->host))
		migrc_check_report("deferred, but the file is open for writing",
				   NULL);
	record_add(mm, addr & PAGE_MASK, pte_pfn(pte));
}

/**
 * migrc_check_begin() - begin a flush of whole address spaces, or a drain
 *
 * Context: any.
 * Return: the checker's clock, for migrc_check_flushed() and
 * migrc_check_drained().
 */
s64 migrc_check_begin(void)
{
	return atomic64_inc_return(&migrc_check_clock);
}

/**
 * migrc_check_flushed() - record the flush of a whole address space
 * @mm:		the address space
 * @start:	value of migrc_check_begin()
 *
 * Context: any.
 */
void migrc_check_flushed(struct mm_struct *mm, s64 start)
{
	migrc_advance(&mm->migrc.checked, start);
}

/**
 * migrc_check_batched() - record that a batched flush will include a range
 * @mm:		address space
 * @start:	first address
 * @end:	the one after the last
 *
 * Context: any; the task that will flush.
 */
void migrc_check_batched(struct mm_struct *mm, unsigned long start,
			 unsigned long end)
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
 * migrc_check_batch_flushed() - record the batched flush of the current task
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
 * migrc_check_range_flushed() - record the flush of a range
 * @mm:		address space
 * @start:	first address
 * @end:	the one after the last; not after @start if struct mmu_gather
 *		means the whole mm, as when two of them meet
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

/**
 * migrc_check_assert_flushed() - check that migrc_flush() left no flush pending
 * @mm:		address space
 * @cause:	as given to migrc_flush()
 *
 * For callers whose change is visible in no PTE.
 *
 * Context: as migrc_flush().
 */
void migrc_check_assert_flushed(struct mm_struct *mm, unsigned int cause)
{
	const struct migrc_record *record = NULL;
	unsigned long flags;
	unsigned int i;

	/*
	 * Other tasks may defer at the same time, in other tables. Only an
	 * injected fault makes a pending flush a certain violation.
	 */
	if (!migrc_should_fail(cause) &&
	    !migrc_should_fail(MIGRC_FAIL_GENERATION))
		return;
	if (!migrc_records || !mm_has_records(mm))
		return;
	spin_lock_irqsave(&migrc_check_lock, flags);
	for (i = 0; i < MIGRC_RECORDS && !record; i++) {
		if (migrc_records[i].mm == mm &&
		    record_is_live(&migrc_records[i]))
			record = &migrc_records[i];
	}
	spin_unlock_irqrestore(&migrc_check_lock, flags);
	if (record)
		migrc_check_report("an mm continues with a pending flush",
				   record);
}

/* Has the flush of the page that the PTE mapped last been deferred, too? */
static bool migrated_again(const struct migrc_record *first, s64 checked)
{
	struct migrc_record *record;

	hlist_for_each_entry(record, pfn_head(migrc_by_src, first->dst), by_src)
		if (record->src == first->dst && record->mm == first->mm &&
		    record->addr == first->addr &&
		    record_was_live(record, checked))
			return true;
	return false;
}

static const char *check_addr(struct mm_struct *mm, unsigned long addr,
			      pte_t pte, struct migrc_record **found)
{
	/* Another CPU's flush ends all records here, or none. */
	s64 checked = atomic64_read(&mm->migrc.checked);
	struct migrc_record *record;

	hlist_for_each_entry(record, addr_head(mm, addr), by_addr) {
		if (record->mm != mm || record->addr != addr ||
		    !record_was_live(record, checked))
			continue;
		/* After reclaim a fault may map another page, see DOC. */
		if (record->flusher && record->dst != pte_pfn(pte))
			continue;
		*found = record;
		if (pte_write(pte))
			return "a PTE becomes writable before its flush";
		if (!record->dst) {
			/* The first PTE set since then maps the destination. */
			record->dst = pte_pfn(pte);
			hlist_add_head(&record->by_dst,
				       pfn_head(migrc_by_dst, record->dst));
		} else if (record->dst != pte_pfn(pte) &&
			   !mm_tlb_flush_pending(mm) &&
			   !migrated_again(record, checked)) {
			return "a PTE maps another page before its flush";
		}
	}
	return NULL;
}

static const char *check_dst(unsigned long pfn, bool batched,
			     struct migrc_record **found)
{
	struct migrc_record *record;

	hlist_for_each_entry(record, pfn_head(migrc_by_dst, pfn), by_dst) {
		/* The source of a folio that was not migrated is valid. */
		if (record->dst != pfn || record->src == pfn ||
		    !record_is_live(record))
			continue;
		if (!batched &&
		    (record->flusher || mm_tlb_flush_pending(record->mm)))
			continue;
		*found = record;
		return "a page becomes writable, but TLBs map its source";
	}
	return NULL;
}

/**
 * migrc_check_set() - check PTEs that are being set
 * @mm:		address space
 * @addr:	first address
 * @pte:	first PTE
 * @nr:		how many, of consecutive pages
 *
 * Context: under the lock of the PTEs, or before they are visible.
 */
void migrc_check_set(struct mm_struct *mm, unsigned long addr, pte_t pte,
		     unsigned int nr)
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

/* Find the record of a PTE by which TLBs still map this page as its source. */
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
		/* As in check_dst(): a folio that was not migrated is valid. */
		if (record->src == pfn && record->dst != pfn &&
		    record_is_live(record))
			found = record;
	}
	spin_unlock_irqrestore(&migrc_check_lock, flags);
	return found;
}

/**
 * migrc_check_free() - check pages that are being freed
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

/*
 * Find the record of a PTE that maps a page of @folio; if @batched, also of one
 * that reclaim has unmapped but not flushed.
 */
static struct migrc_record *record_of(const struct folio *folio, bool batched)
{
	unsigned long pfn = folio_pfn(folio), end = pfn + folio_nr_pages(folio);
	struct migrc_record *record = NULL;
	unsigned long flags;

	if (!migrc_records || !READ_ONCE(migrc_next))
		return NULL;
	spin_lock_irqsave(&migrc_check_lock, flags);
	for (; pfn < end && !record; pfn++)
		check_dst(pfn, batched, &record);
	spin_unlock_irqrestore(&migrc_check_lock, flags);
	return record;
}

/**
 * migrc_check_written() - check a folio of the page cache that was written
 * @folio: the folio
 *
 * Context: any.
 */
void migrc_check_written(const struct folio *folio)
{
	struct migrc_record *record;

	if (folio_test_anon(folio))
		return;
	/* Reclaim marks a tmpfs folio that it cannot swap out, see DOC. */
	record = record_of(folio, !folio_test_swapbacked(folio));
	if (record)
		migrc_check_report("a file is written before a page's flush",
				   record);
}

/**
 * migrc_check_removed() - check a folio that leaves the page cache
 * @folio: the folio
 *
 * Context: any.
 */
void migrc_check_removed(const struct folio *folio)
{
	struct migrc_record *record = record_of(folio, false);

	if (record)
		migrc_check_report("a file loses a page before its flush",
				   record);
}

/**
 * migrc_check_failed() - check a page that is marked or counted as poisoned
 * @pfn: its number
 *
 * Context: any.
 */
void migrc_check_failed(unsigned long pfn)
{
	struct migrc_record *record = source_record(pfn);

	if (record)
		migrc_check_report("a page fails that TLBs still map", record);
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
