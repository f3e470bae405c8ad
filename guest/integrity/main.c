// SPDX-License-Identifier: GPL-2.0
/* integrity: check that every byte survives migration while stressors interfere. */
#include <stdio.h>
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

#define AUDITS 3			/* tests besides those of the stressors */
#define STEP_NS 50000000
#define PROGRESS_NS UINT64_C(10000000000)
/* mtcopy copies nothing until it finds an idle CPU, which is rare under these stressors. */
#define COPY_NS UINT64_C(600000000000)

static struct options options;
static struct test_memory mem;
static struct stressor_set set;

static uint64_t switches_done(void)
{
	for (size_t i = 0; i < set.count; i++)
		if (set.entries[i].stressor == &switch_stressor)
			return stressor_entry_ops(&set.entries[i]);
	return 0;
}

static uint64_t batches_copied(void)
{
	char path[128];

	if (!options.copied_by)
		return 0;
	snprintf(path, sizeof(path), MIGRATION_DIR "/stats/%s/batches", options.copied_by);
	return sysfs_number(path);
}

static void print_progress(uint64_t seconds)
{
	struct json json;

	json_begin(&json, "progress");
	json_int(&json, "seconds", seconds);
	json_int(&json, "moves", atomic_load(&mem.moves));
	json_int(&json, "moved_in_runs", moved_in_runs());
	json_int(&json, "switches", switches_done());
	json_int(&json, "switches_while_busy", atomic_load(&mem.switches_while_busy));
	json_end(&json);
}

/*
 * Return when the time is up, all switches are done, all pages moved and one batch more than `batches` was copied, or
 * when an error has stopped the run.
 */
static void wait_for_end(uint64_t batches)
{
	uint64_t start = clock_ns(), reported = start, now = start, end = start + options.seconds * UINT64_C(1000000000);
	uint64_t in_runs = moved_in_runs() + options.in_runs;

	while (!atomic_load(&mem.stop) &&
	       (now < end || switches_done() < options.switches || moved_in_runs() < in_runs ||
		(options.copied_by && batches_copied() == batches && now < end + COPY_NS))) {
		sleep_ns(STEP_NS);
		now = clock_ns();
		if (now - reported > PROGRESS_NS) {
			print_progress((now - start) / 1000000000);
			reported = now;
		}
	}
	atomic_store(&mem.stop, true);
}

static uint64_t pages_migrated(void)
{
	return sysfs_counter("/proc/vmstat", "pgmigrate_success");
}

static void print_end(uint64_t pages, unsigned int skipped, uint64_t free_before, uint64_t free_after)
{
	struct json json;

	json_begin(&json, "end");
	json_int(&json, "moves", atomic_load(&mem.moves));
	json_int(&json, "pages", pages);
	json_int(&json, "switches", switches_done());
	json_int(&json, "switches_while_busy", atomic_load(&mem.switches_while_busy));
	json_int(&json, "skipped", skipped);
	json_int(&json, "errors", atomic_load(&mem.errors));
	json_int(&json, "memfree_before_kb", free_before);
	json_int(&json, "memfree_after_kb", free_after);
	json_end(&json);
}

int main(int argc, char **argv)
{
	uint64_t free_before, free_after, pages, batches;
	unsigned int skipped;

	options_parse(&options, argc, argv);
	stressor_set_init(&set, &options);
	if (geteuid())
		die(EXIT_MISSING, "needs root to move shared pages, to swap and to set up devices");
	node_require("--from", options.nodes[0]);
	node_require("--to", options.nodes[1]);
	report_begin(&options, set.count + AUDITS);
	free_before = audit_free_kb();
	test_memory_open(&mem, &options);
	pages = pages_migrated();
	batches = batches_copied();
	stressor_set_start(&set, &mem);
	wait_for_end(batches);
	stressor_set_join(&set);
	if (options.copied_by && batches_copied() == batches)
		report_broken(&mem, "move", "%s has copied no batch", options.copied_by);
	pages = pages_migrated() - pages;
	stressor_set_finish(&set, &mem);
	skipped = stressor_set_report(&set, &mem);
	if (options.audit_by && !migrator_select(options.audit_by))
		die(EXIT_FAILED, "--audit-by %s: %m", options.audit_by);
	audit_content(&mem);
	audit_references(&mem);
	test_memory_close(&mem);
	free_after = audit_memory(&mem, free_before, options.leak_kb);
	print_end(pages, skipped, free_before, free_after);
	if (atomic_load(&mem.errors))
		return EXIT_FAILED;
	return skipped == set.count - 1 ? EXIT_MISSING : EXIT_PASSED;
}
