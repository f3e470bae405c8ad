// SPDX-License-Identifier: GPL-2.0
/* Split large folios by discard, unmap and debugfs, and make new ones by faults and collapse. */
#include "stressors.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <unistd.h>

#include "../report.h"
#include "../span.h"
#include "folio.h"
#include "sysfs.h"

#define MOST_PAGES 600	/* more than one THP, and parts of two */

static const char *prepare(struct test_memory *mem)
{
	/* Optional: only split_by_debugfs() needs it. */
	if (access(THP_SPLIT_FILE, W_OK))
		mount("debugfs", "/sys/kernel/debug", "debugfs", 0, NULL);
	for (size_t i = 0; i < mem->count; i++)
		if (mem->areas[i].traits & AREA_LARGE)
			return NULL;
	return "no large folios to split";
}

/* New memory must be zero: any other content leaks another owner's data. */
static void require_zeros(const struct span *span)
{
	const volatile uint64_t *words = (const void *)span_address(span);

	for (size_t i = 0; i < span_bytes(span) / sizeof(*words); i++) {
		uint64_t found = words[i];
		uint32_t index = span->first + i / PAGE_WORDS;
		struct mismatch wrong = { area_identity(span->area, index), i % PAGE_WORDS, 0, found };

		if (found) {
			report_wrong(span->mem, span->area, &wrong, "split");
			return;
		}
	}
}

static bool discard(const struct span *span)
{
	/* Fails at the first locked VMA, after it has discarded the ones before. */
	return !madvise(span_address(span), span_bytes(span), MADV_DONTNEED);
}

/* Replace a part of the mapping in one call, so that no other thread's mmap(2) takes the address range. */
static bool remap(const struct span *span)
{
	if (mmap(span_address(span), span_bytes(span), PROT_READ | PROT_WRITE,
		 MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
		return false;
	madvise(span_address(span), span_bytes(span), MADV_HUGEPAGE);
	return true;
}

static bool replace(struct worker *worker, bool (*drop)(const struct span *))
{
	struct span span;
	bool dropped = false;

	/* AREA_MERGEABLE is excluded: it has no large folios, and would lose MADV_MERGEABLE. */
	if (!span_pick_claimed(worker, &span, AREA_LARGE, 0, MOST_PAGES))
		return false;
	if (span_check(&span, "split")) {
		dropped = drop(&span);
		if (dropped)
			require_zeros(&span);
		span_stamp(&span);
	}
	span_release(&span);
	return dropped;
}

static bool split_by_debugfs(struct worker *worker)
{
	struct span span;
	char command[128];

	if (!span_pick(worker, &span, AREA_LARGE, 0, MOST_PAGES))
		return false;
	snprintf(command, sizeof(command), "%d,0x%lx,0x%lx", (int)getpid(),
		 (unsigned long)span_address(&span), (unsigned long)span_address(&span) + span_bytes(&span));
	return sysfs_write(THP_SPLIT_FILE, command);
}

static bool collapse(struct worker *worker)
{
	struct span span;
	char *block;

	if (!span_pick(worker, &span, AREA_LARGE, 0, 1))
		return false;
	block = (char *)((uintptr_t)span_address(&span) & ~(FOLIO_ALIGN - 1));
	/* Fails if pages are pinned, or if the block has several VMAs. */
	return !madvise(block, FOLIO_ALIGN, MADV_COLLAPSE);
}

static bool run_once(struct worker *worker)
{
	worker_pause(worker);
	switch (worker_random(worker, 4)) {
	case 0: return replace(worker, discard);
	case 1: return replace(worker, remap);
	case 2: return split_by_debugfs(worker);
	default: return collapse(worker);
	}
}

const struct stressor split_stressor = {
	.name = "split", .prepare = prepare, .run_once = run_once,
	.vmstat_counter = { "thp_split_page", "thp_deferred_split_page" },
};
