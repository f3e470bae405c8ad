// SPDX-License-Identifier: GPL-2.0
#include "options.h"

#include <unistd.h>

#include "cmdline.h"
#include "folio.h"
#include "migration.h"
#include "stressor_set.h"
#include "sysfs.h"
#include "test_memory.h"
#include "util.h"

static const char about[] =
	"integrity [OPTION]...\n"
	"Move stamped memory between two nodes under stress and check every byte.";

static void check_together(const struct options *options)
{
	if (!area_bytes(options))
		die(EXIT_USAGE, "--bytes: no room for 2m in every area");
	if (options->bytes / PAGE_BYTES > STAMP_PAGES)
		die(EXIT_USAGE, "--bytes: more than %u pages", STAMP_PAGES);
	if (options->nodes[0] == options->nodes[1])
		die(EXIT_USAGE, "--from and --to are both %d, so nothing would move", options->nodes[0]);
	if ((options->module || options->switches) && !options->switch_migrator)
		die(EXIT_USAGE, "--module and --switches need --switch");
	if (options->control && options->switch_migrator)
		die(EXIT_USAGE, "--control and --switch would select migrators against each other");
	if (options->in_runs && !sysfs_number(MIGRATION_DIR "/runs"))
		die(EXIT_USAGE, "--in-runs: the kernel has no runs, or they are off");
	if (options->module && access(options->module, R_OK))
		die(EXIT_USAGE, "--module %s: %m", options->module);
}

void options_parse(struct options *options, int argc, char **argv)
{
	const struct cmdline_option table[] = {
		OPT_NUMBER("seconds", "N", &options->seconds, 1, 1000000, "minimum time under load (10)"),
		OPT_SIZE("bytes", &options->bytes, "of all memory areas together, at least 2m each (64m)"),
		OPT_LIST("areas", "A,B,...", &options->areas, area_known,
			 "only these areas: 4k mergeable 64k 2m hugetlb shmem disk"),
		OPT_NUMBER("threads", "N", &options->threads, 1, 64, "readers, and as many writers (2)"),
		OPT_NUMBER("movers", "N", &options->movers, 1, 64, "threads that call move_pages(2) (2)"),
		OPT_NUMBER("rest-ms", "N", &options->rest_ms, 1, 1000,
			   "longest rest of a stressor between two operations, and of ksmd (10)"),
		OPT_NODE("from", &options->nodes[0], "one of the two nodes (0)"),
		OPT_NODE("to", &options->nodes[1], "the other one (1)"),
		OPT_LIST("only", "A,B,...", &options->only, stressor_known,
			 "only these stressors: read write fork mlock mprotect ksm swap split\n"
			 "readfile writefile readdisk writedisk vmsplice odirect uring uffd numahint"),
		OPT_TEXT("file", "DIR", &options->file,
			 "directory on a disk file system, for readdisk, writedisk, odirect"),
		OPT_NUMBER("seed", "N", &options->seed, 0, UINT64_MAX,
			   "of all random choices, though not of the scheduler's (1)"),
		OPT_FLAG("switch", &options->switch_migrator, "switch the migrator and its settings under load"),
		OPT_FLAG("control", &options->control,
			 "write random values to all control files under load, with --threads threads"),
		OPT_TEXT("module", "PATH", &options->module,
			 "also load, select, deselect and unload this module"),
		OPT_NUMBER("switches", "N", &options->switches, 1, 10000000,
			   "continue until N switches (or module cycles) are done"),
		OPT_NUMBER("in-runs", "N", &options->in_runs, 1, UINT32_MAX,
			   "continue until N pages have moved in runs"),
		OPT_TEXT("copied-by", "NAME", &options->copied_by,
			 "continue until this migrator has copied a batch, for ten minutes at most"),
		OPT_TEXT("audit-by", "NAME", &options->audit_by, "the migrator to select before the final checks"),
		OPT_NUMBER("leak-kb", "N", &options->leak_kb, 0, UINT32_MAX,
			   "decrease of free memory at the end that passes (8192)"),
		OPT_FLAG("ktap", &options->ktap, "print results as KTAP, with the JSON lines as comments"),
		{ 0 }
	};

	*options = (struct options){
		.seconds = 10, .bytes = (size_t)64 << 20, .threads = 2, .movers = 2,
		.nodes = { 0, 1 }, .seed = 1, .leak_kb = 8192, .rest_ms = 10,
	};
	cmdline_parse(about, table, argc, argv);
	check_together(options);
}
