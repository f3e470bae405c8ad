// SPDX-License-Identifier: GPL-2.0
#include "audit.h"

#include <inttypes.h>
#include <numaif.h>
#include <string.h>
#include <unistd.h>

#include "folio.h"
#include "migration.h"
#include "report.h"
#include "span.h"
#include "sysfs.h"

/*
 * Writeback, per-CPU lists and RCU release pages within seconds, and where memory is swapped out all the time, on an
 * emulated machine, within a minute; a leak never does.
 */
#define ATTEMPTS 240
#define ATTEMPT_NS 250000000

static void test(struct test_memory *mem, const char *name, unsigned int errors_before)
{
	report_test(name, atomic_load(&mem->errors) == errors_before ? PASSED : FAILED, -1, NULL);
}

static bool page_is_good(struct test_memory *mem, struct area *area, uint32_t index)
{
	struct span page = { mem, area, index, 1 };
	bool good;

	if (!span_claim(&page)) {
		report_broken(mem, "content", "page %u is still claimed", area->first + index);
		return false;
	}
	good = span_check(&page, "content");
	span_release(&page);
	return good;
}

void audit_content(struct test_memory *mem)
{
	unsigned int errors = atomic_load(&mem->errors);

	/* One report per area is enough. */
	for (size_t i = 0; i < mem->count; i++)
		for (uint32_t page = 0; page < mem->areas[i].pages; page++)
			if (!page_is_good(mem, &mem->areas[i], page))
				break;
	test(mem, "content", errors);
}

static void report_unmovable(struct test_memory *mem, const struct area *area, int node, const struct moveset *set,
			     const struct move_result *result)
{
	char *address = set->pages[result->first_failed];
	char page[128];

	folio_describe(address, page, sizeof(page));
	report_broken(mem, "references",
		      "%zu pages of area %s never moved to node %d, the first of them page %u (%s): %s",
		      result->failed, area->name, node,
		      area->first + (uint32_t)((address - area->base) / PAGE_BYTES), page,
		      strerror(result->first_error));
}

/*
 * Each page must move to the node once. Other tasks may reclaim pages all the time, so hardly ever are all of them there
 * at once.
 */
static void require_movable(struct test_memory *mem, const struct area *area, int node)
{
	struct move_result result;
	struct moveset set;

	moveset_init(&set, area->base, area->pages * PAGE_BYTES, PAGE_BYTES);
	for (unsigned int attempt = 0; attempt < ATTEMPTS; attempt++) {
		/* Touch the pages first, because a page that is swapped out or dropped cannot be moved. */
		for (size_t i = 0; i < set.count; i++)
			(void)*(volatile char *)set.pages[i];
		/* In a batch one failed page hides those behind it, so the last attempt moves one page a call. */
		result = moveset_move(&set, node, MPOL_MF_MOVE_ALL, attempt == ATTEMPTS - 1 ? 1 : 0);
		if (!result.failed || attempt == ATTEMPTS - 1)
			break;
		moveset_keep_failed(&set, node);
		sleep_ns(ATTEMPT_NS);
	}
	if (result.failed)
		report_unmovable(mem, area, node, &set, &result);
	moveset_free(&set);
}

void audit_references(struct test_memory *mem)
{
	unsigned int errors = atomic_load(&mem->errors);

	for (size_t i = 0; i < mem->count; i++)
		for (int n = 0; n < 2; n++)
			require_movable(mem, &mem->areas[i], mem->options->nodes[n]);
	test(mem, "references", errors);
}

uint64_t audit_free_kb(void)
{
	sync();
	if (!sysfs_write("/proc/sys/vm/drop_caches", "3"))
		die(EXIT_FAILED, "cannot drop caches: %m");
	return nodes_free_kb();
}

uint64_t audit_memory(struct test_memory *mem, uint64_t before, unsigned int leak_kb)
{
	unsigned int errors = atomic_load(&mem->errors);
	uint64_t after = 0;

	for (unsigned int attempt = 0; attempt < ATTEMPTS; attempt++) {
		after = audit_free_kb();
		if (after + leak_kb >= before)
			break;
		sleep_ns(ATTEMPT_NS);
	}
	if (after + leak_kb < before)
		report_broken(mem, "memory", "%" PRIu64 " kB free before, %" PRIu64
			      " kB after, a decrease of %u kB is allowed", before, after, leak_kb);
	test(mem, "memory", errors);
	return after;
}
