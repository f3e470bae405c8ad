// SPDX-License-Identifier: GPL-2.0
#include "options.h"

#include <limits.h>

#include "cmdline.h"
#include "tenants.h"
#include "util.h"

static const char about[] =
	"tierbench [OPTION]...\n"
	"Let the kernel move memory between a fast and a slow node while its hot parts change, and measure how\n"
	"fast its users are; print JSON lines.";

static const char *const policies[] = { "numab", "damon", "reclaim", NULL };

const char *policy_name(enum policy policy)
{
	return policies[policy];
}

size_t options_each_bytes(const struct options *options)
{
	return options->bytes / options->tenants / options->hot_bytes * options->hot_bytes;
}

static void check(const struct options *options)
{
	if (options->hot_bytes % PAGE_BYTES)
		die(EXIT_USAGE, "--hot-bytes: %zu is no multiple of a page", options->hot_bytes);
	if (options_each_bytes(options) < 2 * options->hot_bytes)
		die(EXIT_USAGE, "--bytes: %zu has no room for two hot sets of each of %u tenants", options->bytes,
		    options->tenants);
	if (options->from == options->to)
		die(EXIT_USAGE, "--from and --to are both %d: nothing would move", options->to);
	if (!options->pid != !options->command)
		die(EXIT_USAGE, "--pid PID and --command TEXT belong together");
}

void options_parse(struct options *options, int argc, char **argv)
{
	const struct cmdline_option table[] = {
		OPT_CHOICE("policy", "NAME", &options->policy, policies,
			   "numab: NUMA balancing promotes, reclaim demotes;\n"
			   "damon: schemes of DAMON do both;\n"
			   "reclaim: it demotes, nothing promotes; tenants allocate on the fast node only,\n"
			   "their next hot set anew each time (numab)"),
		OPT_NUMBER("tenants", "N", &options->tenants, 1, MAX_TENANTS,
			   "processes, each pinned to a CPU and in a memory control group of its own (3)"),
		OPT_SIZE("bytes", &options->bytes,
			 "memory of all tenants, in whole hot sets; more than the fast node has (320m)"),
		OPT_SIZE("hot-bytes", &options->hot_bytes, "of each tenant's hot set (8m)"),
		OPT_NUMBER("load-ms", "N", &options->load_ms, 1, 1000000, "how long a sample takes (8000)"),
		OPT_NUMBER("shift-ms", "N", &options->shift_ms, 1, 1000000,
			   "how long a hot set stays where it is (4000)"),
		OPT_NUMBER("pid", "PID", &options->pid, 1, INT_MAX, "instead of tenants: a process that is there, ..."),
		OPT_TEXT("command", "TEXT", &options->command,
			 "... and the shell command that loads it, once a sample; SHIFT is the\n"
			 "number of the sample, and its output goes to POLICY.CONFIG.ROUND.out"),
		OPT_NUMBER("samples", "N", &options->samples, 1, 100000, "timed rounds (10)"),
		OPT_NUMBER("warmup", "N", &options->warmup, 0, 100000, "rounds before them (1)"),
		OPT_NODE("from", &options->from, "the fast node (0)"),
		OPT_NODE("to", &options->to, "the slow node (1)"),
		OPT_CALL("config", "LABEL[:FILE=VALUE[,FILE=VALUE]...]", &options->configs, config_list_add,
			 "settings below /sys/kernel/mm/migration, written before each sample;\n"
			 "repeat it to compare: every round measures each in turn (stock:)"),
		{ 0 }
	};

	*options = (struct options){
		.tenants = 3, .bytes = (size_t)320 << 20, .hot_bytes = (size_t)8 << 20, .load_ms = 8000,
		.shift_ms = 4000, .samples = 10, .warmup = 1, .to = 1,
	};
	cmdline_parse(about, table, argc, argv);
	if (!options->configs.count)
		config_list_add(&options->configs, "stock:");
	check(options);
}
