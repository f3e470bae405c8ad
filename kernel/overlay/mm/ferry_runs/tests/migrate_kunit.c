// SPDX-License-Identifier: GPL-2.0
/*
 * Troubles of a batch of runs: folios that vanish, allocations that
 * fail, references of others, stale TLB entries, calls that find nothing.
 */

#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/highmem.h>
#include <linux/kthread.h>
#include <linux/migrate.h>
#include <linux/migrc.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/rmap.h>
#include <linux/sched.h>
#include <linux/swap.h>
#include <linux/uaccess.h>
#include <trace/events/migrate.h>
#include <trace/events/pagemap.h>

#include "fixture.h"

/* The caller of a migration, and what it saw of its allocations. */
struct caller {
	int nid;
	unsigned int may_alloc;
	unsigned int allocated;
	unsigned int failed;
	unsigned int put;
};

static struct folio *caller_alloc(struct folio *src, unsigned long private)
{
	struct caller *caller = (struct caller *)private;
	struct folio *folio;

	if (caller->allocated == caller->may_alloc) {
		caller->failed++;
		return NULL;
	}
	folio = __folio_alloc_node(GFP_HIGHUSER_MOVABLE, 0, caller->nid);
	caller->allocated += !!folio;
	return folio;
}

static void caller_put(struct folio *dst, unsigned long private)
{
	struct caller *caller = (struct caller *)private;

	caller->put++;
	folio_put(dst);
}

/* Migrate a list, put the rest back, and return its number. */
static int migrate_list(struct list_head *folios, new_folio_t alloc,
			free_folio_t put, void *private)
{
	int left;

	left = migrate_pages(folios, alloc, put, (unsigned long)private,
			     MIGRATE_SYNC, MR_SYSCALL, NULL);
	putback_movable_pages(folios);
	lru_add_drain_all();
	return left;
}

/* As move_pages(2) does; NUMA_NO_NODE: each folio stays on its node. */
static int migrate_to(struct list_head *folios, int nid)
{
	struct migration_target_control mtc = {
		.nid = nid,
		.gfp_mask = GFP_HIGHUSER_MOVABLE,
		.reason = MR_SYSCALL,
	};

	return migrate_list(folios, alloc_migration_target, NULL, &mtc);
}

/* New pages on node 0. */
static unsigned long new_pages(struct kunit *test)
{
	unsigned long start = ferry_test_map(test, NULL);
	LIST_HEAD(folios);

	ferry_test_fill(test, start);
	ferry_test_isolate_all(test, start, &folios);
	migrate_to(&folios, 0);
	return start;
}

static void write_all(struct kunit *test, unsigned long start, u32 value)
{
	unsigned int i;

	for (i = 0; i < PAGES; i++)
		KUNIT_ASSERT_EQ(test, put_user(value, (u32 __user *)
					       (start + i * PAGE_SIZE)), 0);
}

/* The content of the page that the page table maps, whatever the TLB has. */
static u32 read_page(struct kunit *test, unsigned long address)
{
	struct page_state state;
	void *content;
	u32 value;

	ferry_test_read(test, address, &state);
	content = kmap_local_page(pfn_to_page(state.pfn));
	value = *(u32 *)content;
	kunmap_local(content);
	return value;
}

static void allow_cpus(void *mask)
{
	set_cpus_allowed_ptr(current, mask);
}

static void run_on(struct kunit *test, unsigned int cpu)
{
	KUNIT_ASSERT_EQ(test, set_cpus_allowed_ptr(current, cpumask_of(cpu)),
			0);
}

/* The first or the last page of a run, if the pages begin with a window. */
static bool at_end_of_run(unsigned int i)
{
	return i % FERRY_RUN_FOLIOS == 0 || i == PAGES - 1 ||
	       i % FERRY_RUN_FOLIOS == FERRY_RUN_FOLIOS - 1;
}

/*
 * Map pages that the TLB of this CPU has, dirty, but for those at the ends of
 * runs, which are inaccessible. Only if the address space ran on another CPU,
 * too, does their flush wait for the end of the batch.
 */
static unsigned long pages_in_tlb(struct kunit *test, bool batched)
{
	unsigned int bits = HAS_YOUNG | HAS_DIRTY | HAS_WRITE | HAS_EXCLUSIVE;
	const struct cpumask *all = cpu_possible_mask;
	unsigned long start;
	unsigned int i;

	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, allow_cpus,
							(void *)all), 0);
	run_on(test, 0);
	start = new_pages(test);
	KUNIT_ASSERT_TRUE(test, IS_ALIGNED(start, PMD_SIZE));
	for (i = 0; i < PAGES; i++)
		if (at_end_of_run(i))
			ferry_test_set_bits(test, start + i * PAGE_SIZE,
					    bits | HAS_PROTNONE);
	/* This may take idle CPUs off the mask of the address space. */
	flush_tlb_mm(current->mm);
	if (batched) {
		run_on(test, 1);
		put_user(0, (u32 __user *)(start + PAGE_SIZE));
		run_on(test, 0);
	}
	for (i = 0; i < PAGES; i++)
		if (!at_end_of_run(i))
			put_user(1, (u32 __user *)(start + i * PAGE_SIZE));
	return start;
}

/* Write all pages, and check that no write went to a page that was freed. */
static void check_writes(struct kunit *test, unsigned long start)
{
	unsigned int i;

	write_all(test, start, 2);
	for (i = 0; i < PAGES; i++)
		KUNIT_EXPECT_EQ(test, read_page(test, start + i * PAGE_SIZE),
				2);
}

static void check_flush(struct kunit *test, bool batched)
{
	unsigned long start = pages_in_tlb(test, batched);
	LIST_HEAD(folios);

	ferry_test_isolate_all(test, start, &folios);
	KUNIT_EXPECT_EQ(test, migrate_to(&folios, 1), 0);
	check_writes(test, start);
}

/*
 * An inaccessible PTE needs no flush. It must not hide that the others do,
 * whether it is the first or the last one of a run.
 */
static void flush_beside_protnone(struct kunit *test)
{
	check_flush(test, true);
}

/* Another thread's mmu_gather ends when the last PTE of a run is cleared. */
static void end_gather(void *last, unsigned long address, unsigned long pte,
		       int order)
{
	if (address == *(unsigned long *)last)
		dec_tlb_flush_pending(current->mm);
}

/*
 * While an mmu_gather is open a PTE that is inaccessible counts as accessible.
 * If it ends before the flush, the accessible ones of its range need it still.
 */
static void flush_after_gather_ends(struct kunit *test)
{
	unsigned long start, last = 0;
	LIST_HEAD(folios);
	unsigned int i;

	/* To change code flushes the TLB, so it must be done before. */
	KUNIT_ASSERT_EQ(test, register_trace_set_migration_pte(end_gather,
							       &last), 0);
	start = pages_in_tlb(test, true);
	last = start + (FERRY_RUN_FOLIOS - 1) * PAGE_SIZE;
	for (i = FERRY_RUN_FOLIOS; i > 0; i--)
		ferry_test_isolate(test, start + (i - 1) * PAGE_SIZE, &folios);
	inc_tlb_flush_pending(current->mm);
	KUNIT_EXPECT_EQ(test, migrate_to(&folios, 1), 0);
	check_writes(test, start);
	unregister_trace_set_migration_pte(end_gather, &last);
	tracepoint_synchronize_unregister();
	KUNIT_EXPECT_FALSE(test, mm_tlb_flush_pending(current->mm));
}

/* A flush that cannot be batched is done at once. */
static void flush_at_once(struct kunit *test)
{
	check_flush(test, false);
}

/* Without a node each folio keeps its own, also where two nodes alternate. */
static void no_node_is_the_own(struct kunit *test)
{
	unsigned long start = new_pages(test);
	struct page_state state;
	LIST_HEAD(folios);
	unsigned int i;
	u64 moved;

	for (i = 1; i < PAGES; i += 2)
		ferry_test_isolate(test, start + i * PAGE_SIZE, &folios);
	KUNIT_EXPECT_EQ(test, migrate_to(&folios, 1), 0);
	ferry_test_isolate_all(test, start, &folios);
	moved = ferry_test_stat(FERRY_RUN_MOVED);
	KUNIT_EXPECT_EQ(test, migrate_to(&folios, NUMA_NO_NODE), 0);
	KUNIT_EXPECT_EQ(test, ferry_test_stat(FERRY_RUN_MOVED) - moved, PAGES);
	for (i = 0; i < PAGES; i++) {
		ferry_test_read(test, start + i * PAGE_SIZE, &state);
		KUNIT_EXPECT_EQ_MSG(test, pfn_to_nid(state.pfn), i % 2,
				    "page %u", i);
	}
}

/*
 * A folio that is freed meanwhile does not end the runs behind it, and its
 * destination goes back to the caller.
 */
static void first_is_unmapped(struct kunit *test)
{
	struct caller caller = { .nid = 1, .may_alloc = UINT_MAX };
	unsigned long start = new_pages(test);
	u64 busy = ferry_test_stat(FERRY_RUN_BUSY);
	LIST_HEAD(folios);

	ferry_test_isolate_all(test, start, &folios);
	KUNIT_ASSERT_EQ(test, vm_munmap(start, PAGE_SIZE), 0);
	KUNIT_EXPECT_EQ(test, migrate_list(&folios, caller_alloc, caller_put,
					   &caller), 0);
	KUNIT_EXPECT_EQ(test, ferry_test_stat(FERRY_RUN_BUSY) - busy, 1);
	KUNIT_EXPECT_EQ(test, caller.allocated - caller.put, PAGES - 1);
}

/* The counters tell a page that is in use from one that no run may have. */
static void locked_is_busy(struct kunit *test)
{
	unsigned int counts[FERRY_RUN_NR_STATS] = {};
	unsigned long start = new_pages(test);
	struct folio *first;
	LIST_HEAD(folios);
	LIST_HEAD(sorted);

	ferry_test_isolate_all(test, start, &folios);
	first = list_first_entry(&folios, struct folio, lru);
	folio_lock(first);
	ferry_sort_runs(&folios, &sorted, counts);
	folio_unlock(first);
	KUNIT_EXPECT_EQ(test, counts[FERRY_RUN_BUSY], 1);
	KUNIT_EXPECT_EQ(test, counts[FERRY_RUN_UNSUPPORTED], 0);
	list_splice(&sorted, &folios);
	putback_movable_pages(&folios);
}

static unsigned int count_on_node(struct kunit *test, unsigned long start,
				  int nid)
{
	struct page_state state;
	unsigned int i, nr = 0;

	for (i = 0; i < PAGES; i++) {
		ferry_test_read(test, start + i * PAGE_SIZE, &state);
		nr += pfn_to_nid(state.pfn) == nid;
	}
	return nr;
}

/* What was allocated before an allocation fails is used, and moves in runs. */
static void allocation_fails(struct kunit *test)
{
	struct caller caller = { .nid = 1, .may_alloc = 70 };
	unsigned long start = new_pages(test);
	u64 moved = ferry_test_stat(FERRY_RUN_MOVED);
	LIST_HEAD(folios);

	ferry_test_isolate_all(test, start, &folios);
	migrate_list(&folios, caller_alloc, caller_put, &caller);
	KUNIT_EXPECT_EQ(test, ferry_test_stat(FERRY_RUN_MOVED) - moved, 70);
	KUNIT_EXPECT_EQ(test, count_on_node(test, start, 1), 70);
	KUNIT_EXPECT_EQ(test, caller.put, 0);
	/* The runs' last, and the one with which migrate_pages() gives up */
	KUNIT_EXPECT_EQ(test, caller.failed, 2);
}

/* Hold a reference to every other page, or drop it. */
static void pin(struct kunit *test, unsigned long start, bool hold)
{
	struct page_state state;
	unsigned int i;

	for (i = 0; i < PAGES; i += 2) {
		ferry_test_read(test, start + i * PAGE_SIZE, &state);
		if (hold)
			folio_get(pfn_folio(state.pfn));
		else
			folio_put(pfn_folio(state.pfn));
	}
}

/*
 * A folio with a reference of somebody else stays, and as it was; its
 * destination goes back to the caller.
 */
static void pinned_stay(struct kunit *test)
{
	struct caller caller = { .nid = 1, .may_alloc = UINT_MAX };
	unsigned long start = new_pages(test);
	u64 moved = ferry_test_stat(FERRY_RUN_MOVED);
	struct page_state before, after;
	LIST_HEAD(folios);

	ferry_test_read(test, start, &before);
	pin(test, start, true);
	ferry_test_isolate_all(test, start, &folios);
	KUNIT_EXPECT_EQ(test, migrate_list(&folios, caller_alloc, caller_put,
					   &caller), PAGES / 2);
	KUNIT_EXPECT_EQ(test, ferry_test_stat(FERRY_RUN_MOVED) - moved,
			PAGES / 2);
	KUNIT_EXPECT_EQ(test, count_on_node(test, start, 1), PAGES / 2);
	KUNIT_EXPECT_EQ(test, caller.allocated - caller.put, PAGES / 2);
	pin(test, start, false);
	ferry_test_read(test, start, &after);
	KUNIT_EXPECT_EQ(test, before.pfn, after.pfn);
	KUNIT_EXPECT_EQ(test, before.bits, after.bits);
	KUNIT_EXPECT_EQ(test, before.refs, after.refs);
}

/* A folio with a second reference for a while. */
struct referenced {
	struct task_struct *task;	/* that migrates it */
	struct folio *folio;
	unsigned int inserted;		/* folios in LRU lists, by that task */
};

/* From the first folio of a batch that has moved to the end of the next run. */
static void reference_for_a_while(void *data, struct folio *folio)
{
	struct referenced *referenced = data;

	if (current != referenced->task)
		return;
	referenced->inserted++;
	if (referenced->inserted == 1)
		folio_get(referenced->folio);
	else if (referenced->inserted == FERRY_RUN_FOLIOS + 1)
		folio_put(referenced->folio);
}

/*
 * The CPU may not copy for a client that requires its migrator. A folio whose
 * copy is lost, because of a reference that vanishes a moment later, stays.
 */
static void required_copy_is_not_repeated(struct kunit *test)
{
	struct caller caller = { .nid = 1, .may_alloc = UINT_MAX };
	struct referenced referenced = { .task = current };
	unsigned long start = new_pages(test);
	struct ferry_client *client;
	struct page_state state;
	LIST_HEAD(folios);

	client = ferry_client_open("kernel", true);
	KUNIT_ASSERT_FALSE(test, IS_ERR(client));
	ferry_test_isolate_all(test, start, &folios);
	/* In the second run, of which others move. */
	ferry_test_read(test, start + FERRY_RUN_FOLIOS * PAGE_SIZE, &state);
	referenced.folio = pfn_folio(state.pfn);
	KUNIT_EXPECT_EQ(test,
			register_trace_mm_lru_insertion(reference_for_a_while,
							&referenced), 0);
	KUNIT_EXPECT_EQ(test, ferry_client_migrate(client, &folios,
						   caller_alloc, caller_put,
						   (unsigned long)&caller,
						   MIGRATE_ASYNC, MR_SYSCALL,
						   NULL), 1);
	unregister_trace_mm_lru_insertion(reference_for_a_while, &referenced);
	tracepoint_synchronize_unregister();
	KUNIT_EXPECT_GT(test, referenced.inserted, FERRY_RUN_FOLIOS);
	ferry_client_close(client);
	putback_movable_pages(&folios);
	KUNIT_EXPECT_EQ(test, count_on_node(test, start, 1), PAGES - 1);
}

/* A list of folios that one of several tasks migrates. */
struct migrating_task {
	struct task_struct *task;
	struct list_head folios;
	atomic_t *missing;
	struct completion done;
	int left;
};

static int migrate_in_task(void *data)
{
	struct migrating_task *task = data;

	atomic_dec(task->missing);
	while (atomic_read(task->missing))
		cpu_relax();
	task->left = migrate_to(&task->folios, 1);
	complete(&task->done);
	return 0;
}

/* Each task has its own runs: two at once move all of their folios so. */
static void two_tasks(struct kunit *test)
{
	struct migrating_task tasks[2] = {};
	atomic_t missing = ATOMIC_INIT(2);
	unsigned int i;
	u64 moved;

	for (i = 0; i < 2; i++) {
		struct migrating_task *task = &tasks[i];

		INIT_LIST_HEAD(&task->folios);
		init_completion(&task->done);
		task->missing = &missing;
		task->task = kthread_create_on_cpu(migrate_in_task, task, i,
						   "ferry_runs_test/%u");
		KUNIT_ASSERT_FALSE(test, IS_ERR(task->task));
		ferry_test_isolate_all(test, new_pages(test), &task->folios);
	}
	moved = ferry_test_stat(FERRY_RUN_MOVED);
	for (i = 0; i < 2; i++)
		wake_up_process(tasks[i].task);
	for (i = 0; i < 2; i++) {
		wait_for_completion(&tasks[i].done);
		KUNIT_EXPECT_EQ(test, tasks[i].left, 0);
	}
	KUNIT_EXPECT_EQ(test, ferry_test_stat(FERRY_RUN_MOVED) - moved,
			2 * PAGES);
}

/* A page that is poisoned after the checks gets no migration entry. */
static void poisoned_meanwhile(struct kunit *test)
{
	struct ferry_run run = { .nr = 1 };
	unsigned long start = new_pages(test);
	struct ferry_table table = {};
	struct page_state state;
	struct folio *src;
	pte_t pte = {};

	ferry_test_read(test, start, &state);
	src = pfn_folio(state.pfn);
	run.src[0] = src;
	run.dst[0] = folio_alloc(GFP_HIGHUSER_MOVABLE, 0);
	KUNIT_ASSERT_NOT_NULL(test, run.dst[0]);
	run.dst[0]->migrate_info = 0;
	folio_get(src);
	folio_lock(src);
	run.anon_vma = folio_get_anon_vma(src);
	run.mapping = src->mapping;
	run.first = src->index;
	run.last = src->index;
	SetPageHWPoison(&src->page);
	ferry_unmap_run(&run);
	if (ferry_table_enter(&table, current->mm, start))
		pte = ptep_get(table.start + pte_index(start));
	ferry_table_leave(&table);
	KUNIT_EXPECT_TRUE(test, softleaf_is_hwpoison(softleaf_from_pte(pte)));
	KUNIT_EXPECT_FALSE(test, folio_mapped(src));
	ClearPageHWPoison(&src->page);
	put_anon_vma(run.anon_vma);
	folio_unlock(src);
	folio_put(src);
	folio_put(run.dst[0]);
}

/* How often the tracepoints of migration were hit. */
struct trace_hits {
	atomic_t set, removed, inserted;
};

static void count_set(void *data, unsigned long address, unsigned long pte,
		      int order)
{
	atomic_inc(&((struct trace_hits *)data)->set);
}

static void count_removed(void *data, unsigned long address, unsigned long pte,
			  int order)
{
	atomic_inc(&((struct trace_hits *)data)->removed);
}

static void count_inserted(void *data, struct folio *folio)
{
	atomic_inc(&((struct trace_hits *)data)->inserted);
}

/* Runs have the tracepoints of single folios. */
static void traced(struct kunit *test)
{
	unsigned long start = new_pages(test);
	struct trace_hits hits = {};
	LIST_HEAD(folios);

	ferry_test_isolate_all(test, start, &folios);
	KUNIT_EXPECT_EQ(test, register_trace_set_migration_pte(count_set,
							       &hits), 0);
	KUNIT_EXPECT_EQ(test, register_trace_remove_migration_pte(count_removed,
								  &hits), 0);
	KUNIT_EXPECT_EQ(test, register_trace_mm_lru_insertion(count_inserted,
							      &hits), 0);
	KUNIT_EXPECT_EQ(test, migrate_to(&folios, 1), 0);
	unregister_trace_set_migration_pte(count_set, &hits);
	unregister_trace_remove_migration_pte(count_removed, &hits);
	unregister_trace_mm_lru_insertion(count_inserted, &hits);
	tracepoint_synchronize_unregister();
	KUNIT_EXPECT_GE(test, atomic_read(&hits.set), PAGES);
	KUNIT_EXPECT_GE(test, atomic_read(&hits.removed), PAGES);
	KUNIT_EXPECT_GE(test, atomic_read(&hits.inserted), PAGES);
}

/* Make a call of move_pages(2) for all pages, its arguments in user memory. */
static void new_lookup(struct kunit *test, unsigned long start, int node,
		       struct ferry_lookup *lookup)
{
	unsigned long arguments = ferry_test_map(test, NULL);
	unsigned long __user *pages = (void __user *)arguments;
	int __user *nodes = (void __user *)(arguments + BYTES / 2);
	unsigned int i;

	for (i = 0; i < PAGES; i++) {
		KUNIT_ASSERT_EQ(test, put_user(start + i * PAGE_SIZE,
					       pages + i), 0);
		KUNIT_ASSERT_EQ(test, put_user(node, nodes + i), 0);
	}
	*lookup = (struct ferry_lookup) {
		.mm = current->mm,
		.pages = (const void __user *__user *)arguments,
		.nodes = nodes,
		.nr = PAGES,
	};
}

/* Call ferry_add_folios() so often, and count the look-ups that were done. */
static unsigned int count_lookups(struct ferry_lookup *lookup, int node,
				  unsigned int calls, struct list_head *folios)
{
	unsigned int i, nr = 0;

	for (i = 0; i < calls && list_empty(folios); i++) {
		nr += !lookup->skip;
		ferry_add_folios(lookup, 0, node, folios);
	}
	return nr;
}

/* Where nothing is to be moved, look-ups become rare; they begin again. */
static void lookup_backs_off(struct kunit *test)
{
	unsigned long start = new_pages(test);
	struct ferry_lookup lookup;
	LIST_HEAD(folios);

	new_lookup(test, start, 0, &lookup);
	KUNIT_EXPECT_LE(test, count_lookups(&lookup, 0, 1000, &folios), 12);
	KUNIT_EXPECT_TRUE(test, list_empty(&folios));
	new_lookup(test, start, 1, &lookup);
	count_lookups(&lookup, 1, 256, &folios);
	KUNIT_EXPECT_EQ(test, list_count_nodes(&folios), PAGES);
	putback_movable_pages(&folios);
}

/* Runs that are switched during a call leave the LRU batches enabled. */
static void lru_batches_stay(struct kunit *test)
{
	unsigned long start = new_pages(test);
	struct ferry_lookup args, lookup;
	LIST_HEAD(folios);

	new_lookup(test, start, 1, &args);
	ferry_lookup_begin(&lookup, args.mm, args.pages, args.nodes, 1, false);
	KUNIT_EXPECT_FALSE(test, lru_cache_disabled());
	static_branch_disable(&ferry_runs_enabled);
	ferry_lookup_end(&lookup);
	KUNIT_EXPECT_FALSE(test, lru_cache_disabled());

	ferry_lookup_begin(&lookup, args.mm, args.pages, args.nodes, 1, false);
	KUNIT_EXPECT_TRUE(test, lru_cache_disabled());
	static_branch_enable(&ferry_runs_enabled);
	KUNIT_EXPECT_EQ(test, ferry_add_folios(&lookup, 0, 1, &folios), 0);
	ferry_lookup_end(&lookup);
	KUNIT_EXPECT_FALSE(test, lru_cache_disabled());
}

/* A page that another task holds is not tried again. */
static void retry_needs_a_chance(struct kunit *test)
{
	unsigned long start = new_pages(test);
	struct ferry_lookup args, lookup;
	struct folio *folio;
	LIST_HEAD(folios);

	new_lookup(test, start, 1, &args);
	ferry_test_isolate(test, start, &folios);
	folio = list_first_entry(&folios, struct folio, lru);
	folio_get(folio);
	ferry_lookup_begin(&lookup, args.mm, args.pages, args.nodes, 1, false);
	KUNIT_EXPECT_FALSE(test, ferry_lookup_retry(&lookup, &folios));
	ferry_lookup_end(&lookup);
	folio_put(folio);
	ferry_lookup_begin(&lookup, args.mm, args.pages, args.nodes, 1, false);
	KUNIT_EXPECT_TRUE(test, ferry_lookup_retry(&lookup, &folios));
	KUNIT_EXPECT_FALSE(test, ferry_lookup_retry(&lookup, &folios));
	ferry_lookup_end(&lookup);
	putback_movable_pages(&folios);
}

/* Switching clears the TLB, which must not happen within a test of it. */
static int enable_runs(struct kunit *test)
{
	static_branch_enable(&ferry_runs_enabled);
	return ferry_test_init(test);
}

/* The folios of a batch, and how many destinations it got with one locked. */
static struct {
	struct folio *src[PAGES];
	unsigned int locked;
} watched;

static struct folio *watched_alloc(struct folio *src, unsigned long private)
{
	unsigned int i;

	for (i = 0; i < PAGES; i++)
		if (folio_test_locked(watched.src[i]))
			break;
	watched.locked += i < PAGES;
	return caller_alloc(src, private);
}

/*
 * Migrate a batch as with a migrator selected, without one that copies. Return
 * how many folios the first hook unmapped. If it is late, @start is long ago.
 */
static unsigned int migrate_gathered(struct kunit *test, u64 start,
				     struct caller *caller)
{
	unsigned long memory = new_pages(test);
	struct ferry_gather gather;
	struct migrc_batch migrc;
	struct page_state state;
	LIST_HEAD(unmapped);
	LIST_HEAD(targets);
	LIST_HEAD(folios);
	unsigned int i, nr;

	for (i = 0; i < PAGES; i++) {
		ferry_test_read(test, memory + i * PAGE_SIZE, &state);
		watched.src[i] = pfn_folio(state.pfn);
	}
	watched.locked = 0;
	ferry_test_isolate_all(test, memory, &folios);
	migrc_batch_begin(&migrc, (unsigned long)caller, MR_SYSCALL);
	__ferry_gather_init(&gather, watched_alloc, caller_put,
			    (unsigned long)caller, MR_SYSCALL);
	gather.start = start;
	KUNIT_EXPECT_EQ(test, __ferry_migrate_runs(&folios, &unmapped, &targets,
						   watched_alloc, caller_put,
						   (unsigned long)caller,
						   MR_SYSCALL, &gather, &migrc),
			0);
	nr = list_count_nodes(&unmapped);
	try_to_unmap_flush();
	migrc_batch_flush(&migrc);
	KUNIT_EXPECT_EQ(test, __ferry_move_runs(&unmapped, &targets,
						MR_SYSCALL), nr);
	migrc_batch_end(&migrc);
	KUNIT_EXPECT_FALSE(test, __ferry_gather_next(&gather, &folios,
						     &folios));
	KUNIT_EXPECT_EQ(test, caller->allocated, nr + caller->put);
	putback_movable_pages(&folios);
	KUNIT_EXPECT_EQ(test, count_on_node(test, memory, 1), nr);
	return nr;
}

/* A start of the batch after which its time never ends. */
#define NEVER_LATE	((u64)S64_MAX)

/* With a migrator no folio waits for an allocation of its batch. */
static void gathered_allocates_before_it_locks(struct kunit *test)
{
	struct caller caller = { .nid = 1, .may_alloc = UINT_MAX };

	KUNIT_EXPECT_EQ(test, migrate_gathered(test, NEVER_LATE, &caller),
			PAGES);
	KUNIT_EXPECT_EQ(test, watched.locked, 0);
}

/* With a migrator the batch ends by its time, after the run that was late. */
static void gathered_ends_in_time(struct kunit *test)
{
	struct caller caller = { .nid = 1, .may_alloc = UINT_MAX };

	KUNIT_EXPECT_EQ(test, migrate_gathered(test, 1, &caller),
			FERRY_RUN_FOLIOS);
	KUNIT_EXPECT_EQ(test, watched.locked, 0);
}

/* With a migrator the runs have what could be allocated in advance. */
static void gathered_allocation_fails(struct kunit *test)
{
	struct caller caller = { .nid = 1, .may_alloc = 70 };

	KUNIT_EXPECT_EQ(test, migrate_gathered(test, NEVER_LATE, &caller), 70);
	KUNIT_EXPECT_EQ(test, caller.put, 0);
}

/* A task may end a flush on a CPU whose clock is behind. */
static void negative_times_are_none(struct kunit *test)
{
	u64 mean = 800;

	ferry_learn(&mean, 1600, 2);
	KUNIT_EXPECT_EQ(test, mean, 800);
	ferry_learn(&mean, -NSEC_PER_MSEC, 2);
	KUNIT_EXPECT_EQ(test, mean, 700);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(flush_beside_protnone),
	KUNIT_CASE(flush_after_gather_ends),
	KUNIT_CASE(flush_at_once),
	KUNIT_CASE(first_is_unmapped),
	KUNIT_CASE(locked_is_busy),
	KUNIT_CASE(no_node_is_the_own),
	KUNIT_CASE(allocation_fails),
	KUNIT_CASE(pinned_stay),
	KUNIT_CASE(required_copy_is_not_repeated),
	KUNIT_CASE(two_tasks),
	KUNIT_CASE(poisoned_meanwhile),
	KUNIT_CASE(traced),
	KUNIT_CASE(lookup_backs_off),
	KUNIT_CASE(lru_batches_stay),
	KUNIT_CASE(retry_needs_a_chance),
	KUNIT_CASE(gathered_allocates_before_it_locks),
	KUNIT_CASE(gathered_ends_in_time),
	KUNIT_CASE(gathered_allocation_fails),
	KUNIT_CASE(negative_times_are_none),
	{}
};

static struct kunit_suite suite = {
	.name = "ferry_runs_migrate",
	.init = enable_runs,
	.exit = ferry_test_exit,
	.test_cases = cases,
};

kunit_test_suite(suite);
