// SPDX-License-Identifier: GPL-2.0
#include "options.h"

#include <numa.h>

#include "cmdline.h"
#include "util.h"

static const char about[] =
	"compactbench [OPTION]...\n"
	"Fill a node with single pages that have holes between them, let the kernel compact it, and measure the\n"
	"work; print JSON lines. Needs the module alloc_blocks.";

const char *const workload_names[] = { "idle", "busy", "proactive", NULL };

void options_parse(struct options *options, int argc, char **argv)
{
	const struct cmdline_option table[] = {
		OPT_CHOICE("workload", "NAME", &options->workload, workload_names,
			   "idle: allocations of blocks compact the node, on a CPU that has no other work;\n"
			   "busy: a thread shares this CPU and counts its iterations;\n"
			   "proactive: kcompactd compacts the node, and nothing is allocated (idle)"),
		OPT_NUMBER("order", "N", &options->order, 1, 9, "of the blocks (9)"),
		OPT_NUMBER("blocks", "N", &options->blocks, 1, 1u << 30, "to allocate in a sample (64)"),
		OPT_NODE("node", &options->node, "that is compacted (the last one)"),
		OPT_NUMBER("cpu", "N", &options->cpu, 0, 4095, "that allocates (the last one)"),
		OPT_NUMBER("limit-s", "N", &options->limit_s, 1, 36000,
			   "proactive: how long to wait until kcompactd is done (60)"),
		OPT_NUMBER("samples", "N", &options->samples, 1, 100000, "timed rounds (10)"),
		OPT_NUMBER("warmup", "N", &options->warmup, 0, 100000, "rounds before them (1)"),
		OPT_CALL("config", "LABEL[:FILE=VALUE[,FILE=VALUE]...]", &options->configs, config_list_add,
			 "settings below /sys/kernel/mm/migration, written before each sample;\n"
			 "repeat it to compare: every round measures each in turn (stock:)"),
		{ 0 }
	};

	*options = (struct options){
		.order = 9, .blocks = 64, .samples = 10, .warmup = 1, .limit_s = 60, .cpu = cpus_usable() - 1,
		.node = numa_available() < 0 ? 0 : numa_max_node(),
	};
	cmdline_parse(about, table, argc, argv);
	if (!options->configs.count)
		config_list_add(&options->configs, "stock:");
}
