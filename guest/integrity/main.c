// SPDX-License-Identifier: GPL-2.0
/* integrity: does every byte survive migration, whatever gets in the way? */
#include <unistd.h>

#include "audit.h"
#include "folio.h"
#include "json.h"
#include "migration.h"
#include "report.h"
#include "stressor_set.h"
#include "stressors/stressors.h"
#include "sysfs.h"
#include "test_memory.h"
#include "util.h"

#define AUDITS 3			/* tests besides those of the crew */
#define STEP_NS 50000000
#define PROGRESS_NS UINT64_C(10000000000)

static struct options options;
static struct arena arena;
static struct crew crew;

static void check_machine(void)
{
	if (geteuid())
		die(EXIT_MISSING, "needs root: to move shared pages, to swap, to set up devices");
	node_require("--from", options.nodes[0]);
	node_require("--to", options.nodes[1]);
}

static uint64_t flips_done(void)
{
	for (size_t i = 0; i < crew.count; i++)
		if (crew.members[i].antagonist == &flip_antagonist)
			return member_acts(&crew.members[i]);
	return 0;
}

static void print_progress(const char *event, uint64_t seconds)
{
	struct json json;

	json_begin(&json, event);
	json_int(&json, "seconds", seconds);
	json_int(&json, "moves", atomic_load(&arena.moves));
	json_int(&json, "flips", flips_done());
	json_int(&json, "flips_at_work", atomic_load(&arena.flips_at_work));
	json_end(&json);
}

/* Until the time is up and the flips are done, or something is wrong. */
static void wait_for_end(void)
{
	uint64_t start = clock_ns(), said = start, now = start;

	while (!atomic_load(&arena.stop) &&
	       (now - start < options.seconds * UINT64_C(1000000000) || flips_done() < options.switches)) {
		sleep_ns(STEP_NS);
		now = clock_ns();
		if (now - said > PROGRESS_NS) {
			print_progress("progress", (now - start) / 1000000000);
			said = now;
		}
	}
	atomic_store(&arena.stop, true);
}

static uint64_t pages_migrated(void)
{
	return sysfs_counter("/proc/vmstat", "pgmigrate_success");
}

static void print_end(uint64_t pages, unsigned int skipped, uint64_t free_before, uint64_t free_after)
{
	struct json json;

	json_begin(&json, "end");
	json_int(&json, "moves", atomic_load(&arena.moves));
	json_int(&json, "pages", pages);
	json_int(&json, "flips", flips_done());
	json_int(&json, "flips_at_work", atomic_load(&arena.flips_at_work));
	json_int(&json, "skipped", skipped);
	json_int(&json, "errors", atomic_load(&arena.errors));
	json_int(&json, "memfree_before_kb", free_before);
	json_int(&json, "memfree_after_kb", free_after);
	json_end(&json);
}

int main(int argc, char **argv)
{
	uint64_t free_before, free_after, pages;
	unsigned int skipped;

	options_parse(&options, argc, argv);
	crew_choose(&crew, &options);
	check_machine();
	report_begin(&options, crew.count + AUDITS);
	free_before = audit_free_kb();
	arena_open(&arena, &options);
	pages = pages_migrated();
	crew_start(&crew, &arena);
	wait_for_end();
	crew_join(&crew);
	pages = pages_migrated() - pages;
	crew_finish(&crew, &arena);
	skipped = crew_report(&crew, &arena);
	if (options.audit_by && !migrator_select(options.audit_by))
		die(EXIT_FAILED, "--audit-by %s: %m", options.audit_by);
	audit_content(&arena);
	audit_references(&arena);
	arena_close(&arena);
	free_after = audit_memory(&arena, free_before, options.leak_kb);
	print_end(pages, skipped, free_before, free_after);
	if (atomic_load(&arena.errors))
		return EXIT_FAILED;
	return skipped == crew.count - 1 ? EXIT_MISSING : EXIT_PASSED;
}
