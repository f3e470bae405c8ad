// SPDX-License-Identifier: GPL-2.0
#include "stale_tlb.h"

#include <stdlib.h>

#include "cmdline.h"
#include "util.h"

static const char about[] =
	"stale_tlb [OPTION]...\n"
	"Check that no CPU reads stale data through a TLB entry whose flush was deferred.";

static void exit_at_once(void *target, const char *value)
{
	(void)target;
	(void)value;
	exit(EXIT_PASSED);
}

void options_parse(struct options *options, int argc, char **argv)
{
	const struct cmdline_option table[] = {
		OPT_TEXT("test", "NAME,...|all", &options->tests, "tests to run, each in a process of its own (all)"),
		OPT_TEXT("except", "NAME,...", &options->except, "tests not to run"),
		OPT_FLAG("list", &options->list, "list the tests"),
		OPT_NUMBER("rounds", "N", &options->rounds, 1, 10000000, "rounds of each test (100)"),
		OPT_FLAG("until-stale", &options->until_stale,
			 "pass once stale data was read: for a kernel with an injected fault"),
		OPT_FLAG("off", &options->off,
			 "defer no flush, as a control; if both nodes are the same, nothing moves"),
		OPT_FLAG("machine", &options->machine,
			 "also run tests that take CPUs, memory or settings from the whole machine: in a guest only"),
		OPT_NODE("from", &options->nodes[0], "one of the two nodes (0)"),
		OPT_NODE("to", &options->nodes[1], "the other one (1)"),
		OPT_TEXT("dir", "DIR", &options->dir, "directory for files, on tmpfs or ext4 (/dev/shm)"),
		OPT_NUMBER("limit", "SECONDS", &options->limit_s, 1, 1000000, "time limit of each test (600)"),
		OPT_NUMBER("seed", "N", &options->seed, 0, UINT32_MAX,
			   "of all random choices, though not of the scheduler's (1)"),
		OPT_FLAG("ktap", &options->ktap, "print results as KTAP, with the JSON lines as comments"),
		OPT_CALL(EXIT_OPTION, NULL, NULL, exit_at_once, NULL),
		{ 0 }
	};

	*options = (struct options){
		.tests = "all", .rounds = 100, .limit_s = 600, .nodes = { 0, 1 }, .dir = "/dev/shm", .seed = 1,
	};
	cmdline_parse(about, table, argc, argv);
	if (options->nodes[0] == options->nodes[1] && !options->off)
		die(EXIT_USAGE, "--from and --to are both %d, so nothing would move", options->nodes[0]);
}
