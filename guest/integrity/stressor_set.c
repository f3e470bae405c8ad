// SPDX-License-Identifier: GPL-2.0
#include "stressor_set.h"

#include <numaif.h>
#include <stdlib.h>
#include <string.h>

#include "cmdline.h"
#include "migration.h"
#include "report.h"
#include "span.h"
#include "stressors/stressors.h"
#include "sysfs.h"

/* The mover: it moves pages between the nodes, in large and small batches, and claims none. */

/* Return the node that the span's first page is not on; a random one if the page is not mapped. */
static int other_node(struct worker *worker, const struct span *span)
{
	const int *nodes = worker->mem->options->nodes;
	void *page = span_address(span);
	int where;

	if (move_pages(0, 1, &page, NULL, &where, 0) || where < 0)
		return nodes[worker_random(worker, 2)];
	return where == nodes[0] ? nodes[1] : nodes[0];
}

static bool move(struct worker *worker)
{
	/* Each mover has its own arrays, until it exits. */
	static _Thread_local struct moveset set;
	struct test_memory *mem = worker->mem;
	struct span span;
	size_t step = PAGE_BYTES;

	/* All areas have the same size. */
	if (!set.pages)
		moveset_init(&set, NULL, mem->areas[0].pages * PAGE_BYTES, PAGE_BYTES);
	/* Large batches test batch copies; small ones hit single pages at odd moments. */
	span_pick(worker, &span, ~0u, 0, worker_random(worker, 4) ? UINT32_MAX : SPAN_PAGES);
	/*
	 * One address a folio makes the largest batches; one a page also passes tail pages. But for each second address the
	 * kernel tries a pinned hugetlb folio ten times, and so keeps the users away that would end the pin.
	 */
	if (span.area->traits & AREA_HUGETLB)
		step = span_bytes(&span) < span.area->folio_bytes ? span_bytes(&span) : span.area->folio_bytes;
	else if (worker_random(worker, 4) && span.area->folio_bytes <= span_bytes(&span))
		step = span.area->folio_bytes;
	moveset_retarget(&set, span_address(&span), span_bytes(&span), step);
	moveset_move(&set, other_node(worker, &span), MPOL_MF_MOVE_ALL, 0);
	atomic_fetch_add(&mem->moves, 1);
	return true;
}

static const struct stressor mover = {
	.name = "move", .run_once = move, .eager = true, .vmstat_counter = { "pgmigrate_success" },
};

static const struct stressor *const all[] = {
	&read_stressor, &write_stressor, &fork_stressor, &mlock_stressor,
	&mprotect_stressor, &ksm_stressor, &swap_stressor, &split_stressor,
	&readfile_stressor, &writefile_stressor, &readdisk_stressor, &writedisk_stressor,
	&vmsplice_stressor, &odirect_stressor, &uring_stressor,
	&uffd_stressor, &numahint_stressor,
};

#define ALL_COUNT (sizeof(all) / sizeof(*all))

static void add(struct stressor_set *set, const struct stressor *stressor)
{
	set->entries[set->count++] = (struct stressor_entry){ .stressor = stressor };
}

bool stressor_known(const char *name)
{
	for (size_t i = 0; i < ALL_COUNT; i++)
		if (!strcmp(all[i]->name, name))
			return true;
	return false;
}

void stressor_set_init(struct stressor_set *set, const struct options *options)
{
	add(set, &mover);
	/* The order is fixed, not that of --only: prepare() runs in it and finish() in reverse. */
	for (size_t i = 0; i < ALL_COUNT; i++)
		if (!options->only || cmdline_in_list(options->only, all[i]->name))
			add(set, all[i]);
	if (options->switch_migrator)
		add(set, &switch_stressor);
	if (options->control) {
		add(set, &control_stressor);
		add(set, &lru_gen_stressor);
	}
}

static uint64_t vmstat_sum(const struct stressor *stressor)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < 2 && stressor->vmstat_counter[i]; i++)
		sum += sysfs_counter("/proc/vmstat", stressor->vmstat_counter[i]);
	return sum;
}

static void start_workers(struct stressor_entry *entry, struct test_memory *mem, unsigned int number)
{
	const struct stressor *stressor = entry->stressor;

	entry->vmstat_before = vmstat_sum(stressor);
	entry->worker_count = stressor == &mover ? mem->options->movers :
			      stressor->many ? mem->options->threads : 1;
	entry->workers = calloc(entry->worker_count, sizeof(*entry->workers));
	if (!entry->workers)
		die(EXIT_FAILED, "no memory for workers");
	/* A stressor has at most 64 workers, so each worker gets a seed of its own. */
	for (unsigned int i = 0; i < entry->worker_count; i++)
		worker_start(&entry->workers[i], stressor, mem,
			     mem->options->seed * 4096 + number * 64 + i);
}

void stressor_set_start(struct stressor_set *set, struct test_memory *mem)
{
	/* Prepare all stressors before the first worker starts. */
	for (size_t i = 0; i < set->count; i++) {
		struct stressor_entry *entry = &set->entries[i];

		if (entry->stressor->prepare)
			entry->skip = entry->stressor->prepare(mem);
	}
	for (size_t i = 0; i < set->count; i++)
		if (!set->entries[i].skip)
			start_workers(&set->entries[i], mem, i);
}

void stressor_set_join(struct stressor_set *set)
{
	for (size_t i = 0; i < set->count; i++)
		for (unsigned int j = 0; j < set->entries[i].worker_count; j++)
			worker_join(&set->entries[i].workers[j]);
}

void stressor_set_finish(struct stressor_set *set, struct test_memory *mem)
{
	/*
	 * In reverse order, so that swap finishes before ksm. If KSM unmerged first, pages that are swapped
	 * out would come back merged, and the kernel could neither find their mappings nor move them.
	 */
	for (size_t i = set->count; i--;) {
		struct stressor_entry *entry = &set->entries[i];

		if (!entry->skip && entry->stressor->finish)
			entry->stressor->finish(mem);
	}
}

uint64_t stressor_entry_ops(const struct stressor_entry *entry)
{
	uint64_t ops = 0;

	for (unsigned int i = 0; i < entry->worker_count; i++)
		ops += atomic_load(&entry->workers[i].ops);
	return ops;
}

static const char *idle_reason(const struct stressor_entry *entry)
{
	const struct stressor *stressor = entry->stressor;

	if (entry->skip)
		return entry->skip;
	if (!stressor_entry_ops(entry))
		return "no operation was possible";
	if (stressor->vmstat_counter[0] && vmstat_sum(stressor) == entry->vmstat_before)
		return "its counters in /proc/vmstat did not grow";
	return NULL;
}

unsigned int stressor_set_report(const struct stressor_set *set, struct test_memory *mem)
{
	unsigned int skipped = 0;

	for (size_t i = 0; i < set->count; i++) {
		const struct stressor_entry *entry = &set->entries[i];
		const char *idle = idle_reason(entry);
		/* Without moves the run tests nothing, so the mover must not be skipped. */
		bool must = entry->stressor == &mover;

		if (idle && must)
			report_broken(mem, "move", "%s", idle);
		report_test(entry->stressor->name, !idle ? PASSED : must ? FAILED : SKIPPED,
			    stressor_entry_ops(entry), idle);
		skipped += idle && !must;
	}
	return skipped;
}
