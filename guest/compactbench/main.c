// SPDX-License-Identifier: GPL-2.0
/* compactbench: how much work is it to make blocks of pages on a node whose free memory is fragmented? */
#include <errno.h>
#include <numa.h>
#include <unistd.h>

#include "blocks.h"
#include "folio.h"
#include "fragment.h"
#include "hog.h"
#include "json.h"
#include "options.h"
#include "proactive.h"
#include "sysfs.h"
#include "tiering.h"
#include "usage.h"
#include "util.h"

/* After an allocation that failed, the kernel defers compaction for up to so many more. */
#define DEFERRED 64

/* What one sample measured, beside its usage. */
struct sample {
	uint64_t ns;
	uint64_t blocks;	/* that were made in this time */
	uint64_t more_blocks;	/* that could be allocated afterwards */
	uint64_t hog_iterations;
	struct usage before, after;
};

/* Everything that the machine may refuse is here, before time is spent. */
static void set_up_machine(const struct options *options)
{
	if (geteuid())
		die(EXIT_MISSING, "needs root: it changes settings of the kernel");
	if (numa_available() >= 0)
		node_require("--node", options->node);
	else if (options->node)
		die(EXIT_MISSING, "--node: this kernel has node 0 only (CONFIG_NUMA)");
	blocks_require();
	config_list_try(&options->configs);
	tiering_disable();
	proactive_forbid();
	/* A boost of the watermarks would wake kswapd and kcompactd. */
	if (!sysfs_set_until_exit("/proc/sys/vm/watermark_boost_factor", "0"))
		die(EXIT_FAILED, "vm.watermark_boost_factor: %m");
	/* The OOM killer is to choose another process. */
	if (!sysfs_write("/proc/self/oom_score_adj", "-1000"))
		die(EXIT_FAILED, "/proc/self/oom_score_adj: %m");
	if (options->workload != WORKLOAD_PROACTIVE)
		cpu_pin(options->cpu);
}

/* Let compaction make a block, which is not timed: that ends a deferral. Blocks of other origin do not count. */
static void make_first_block(const struct options *options)
{
	uint64_t made = sysfs_counter("/proc/vmstat", "compact_success");

	for (int i = 0; i <= DEFERRED; i++) {
		blocks_allocate(options->node, options->order, 1);
		if (sysfs_counter("/proc/vmstat", "compact_success") != made)
			return;
	}
	die(EXIT_FAILED, "the kernel makes no block of order %u on node %d", options->order, options->node);
}

/* Until an allocation fails. */
static uint64_t make_more_blocks(const struct options *options)
{
	uint64_t made = 0;

	while (blocks_allocate(options->node, options->order, 1).got)
		made++;
	return made;
}

static void allocate(const struct options *options, struct sample *sample)
{
	struct blocks blocks;
	uint64_t hog;

	make_first_block(options);
	if (options->workload == WORKLOAD_BUSY)
		hog_start();
	usage_begin(&sample->before, options->cpu, CLOCK_THREAD_CPUTIME_ID);
	hog = hog_iterations();
	blocks = blocks_allocate(options->node, options->order, options->blocks);
	sample->hog_iterations = hog_iterations() - hog;
	usage_end(&sample->after, options->cpu, CLOCK_THREAD_CPUTIME_ID);
	if (options->workload == WORKLOAD_BUSY)
		hog_stop();
	sample->ns = blocks.ns;
	sample->blocks = blocks.got;
	sample->more_blocks = make_more_blocks(options);
}

/* Blocks that kcompactd made are free afterwards. */
static void compact_proactively(const struct options *options, struct sample *sample)
{
	sample->ns = proactive_run(options, &sample->before, &sample->after);
	sample->blocks = blocks_take(options->node, options->order).got;
}

static void print_sample(const struct options *options, const struct config *config, unsigned int round,
			 const struct sample *sample)
{
	bool warmup = round < options->warmup;
	struct json json;

	json_begin(&json, "sample");
	json_text(&json, "config", config->label);
	json_int(&json, "round", warmup ? round : round - options->warmup);
	json_flag(&json, "warmup", warmup);
	json_text(&json, "workload", workload_names[options->workload]);
	json_int(&json, "order", options->order);
	json_int(&json, "wall_ns", sample->ns);
	json_int(&json, "blocks_got", sample->blocks);
	if (options->workload != WORKLOAD_PROACTIVE) {
		json_int(&json, "blocks_wanted", options->blocks);
		json_int(&json, "blocks_more", sample->more_blocks);
	}
	if (options->workload == WORKLOAD_BUSY)
		json_int(&json, "hog_iterations", sample->hog_iterations);
	usage_print(&json, &sample->before, &sample->after);
	json_end(&json);
}

static void take_sample(const struct options *options, const struct config *config, unsigned int round)
{
	static struct sample sample;
	struct fragments fragments;

	sample = (struct sample){ 0 };
	config_apply(config);
	fragments_make(&fragments, options->node);
	blocks_forget_skipped(options->node);
	blocks_take(options->node, options->order);
	if (options->workload == WORKLOAD_PROACTIVE)
		compact_proactively(options, &sample);
	else
		allocate(options, &sample);
	print_sample(options, config, round, &sample);
	blocks_free();
	fragments_free(&fragments);
}

int main(int argc, char **argv)
{
	static struct options options;
	struct json json;

	options_parse(&options, argc, argv);
	set_up_machine(&options);
	for (unsigned int round = 0; round < options.warmup + options.samples; round++)
		for (size_t i = 0; i < options.configs.count; i++)
			take_sample(&options, &options.configs.all[i], round);
	json_begin(&json, "end");
	json_end(&json);
	return EXIT_PASSED;
}
