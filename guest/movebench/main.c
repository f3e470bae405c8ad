// SPDX-License-Identifier: GPL-2.0
/* movebench: how fast does memory move between two nodes, under each of several settings? */
#include <numaif.h>
#include <string.h>
#include <unistd.h>

#include "folio.h"
#include "hog.h"
#include "json.h"
#include "memory.h"
#include "migration.h"
#include "options.h"
#include "util.h"

struct bench {
	struct options options;
	struct memory memory;
	struct moveset set;
	bool renew;		/* see memory_must_renew() */
};

static void print_start(const struct options *options)
{
	struct json json;

	json_begin(&json, "start");
	json_text(&json, "kind", kind_names[options->kind]);
	json_int(&json, "folio_bytes", options->folio_bytes);
	json_int(&json, "bytes", options->bytes);
	json_int(&json, "samples", options->samples);
	json_int(&json, "warmup", options->warmup);
	json_int(&json, "from", options->from);
	json_int(&json, "to", options->to);
	json_int(&json, "unmeasured", options->unmeasured);
	json_int(&json, "cpu_hogs", options->cpu_hogs);
	json_int(&json, "pages_per_call", options->pages_per_call);
	json_text(&json, "order", order_names[options->order]);
	json_flag(&json, "read_only", options->read_only);
	json_flag(&json, "renewed", memory_must_renew(options));
	json_int(&json, "configs", options->configs.count);
	json_end(&json);
}

static void print_sample(const struct options *options, const struct config *config, unsigned int round,
			 const struct move_result *there, const struct move_result *back, const struct copied *copied)
{
	size_t pages = options->folio_bytes / PAGE_BYTES;
	size_t moved = there->moved + back->moved;
	bool warmup = round < options->warmup;
	struct json json;

	json_begin(&json, "sample");
	json_text(&json, "config", config->label);
	json_int(&json, "round", warmup ? round : round - options->warmup);
	json_flag(&json, "warmup", warmup);
	json_int(&json, "at_there", there->at);
	json_int(&json, "at_back", back->at);
	json_int(&json, "ns_there", there->ns);
	json_int(&json, "ns_back", back->ns);
	json_int(&json, "pages_moved", moved * pages);
	json_int(&json, "pages_failed", (there->failed + back->failed) * pages);
	json_int(&json, "bytes", moved * options->folio_bytes);
	json_int(&json, "copied_bytes", copied->bytes);
	json_int(&json, "copied_ns", copied->ns);
	json_end(&json);
}

static struct move_result move_all(struct bench *bench, int from, int to)
{
	const struct options *options = &bench->options;
	struct move_result result;

	if (bench->renew)
		memory_renew(&bench->memory, from);
	else if (options->read_only)
		pattern_check(&bench->memory.content);
	else
		pattern_step(&bench->memory.content);
	sleep_ns(options->settle_ms * UINT64_C(1000000));
	result = moveset_move(&bench->set, to, MPOL_MF_MOVE, options->pages_per_call);
	result.ns += migrc_drain();
	/* If a folio is split, its tail stays behind and is not counted. Single pages cannot split. */
	if (options->folio_bytes > PAGE_BYTES)
		memory_require_folios(&bench->memory, options, "after a move", EXIT_FAILED);
	return result;
}

static void take_sample(struct bench *bench, const struct config *config, unsigned int round)
{
	const struct options *options = &bench->options;
	struct move_result there, back;
	struct copied before, after;

	config_apply(config);
	for (unsigned int i = 0; i < options->unmeasured; i++) {
		move_all(bench, options->from, options->to);
		move_all(bench, options->to, options->from);
	}
	before = migrator_copied();
	there = move_all(bench, options->from, options->to);
	back = move_all(bench, options->to, options->from);
	after = migrator_copied();
	after.bytes -= before.bytes;
	after.ns -= before.ns;
	print_sample(options, config, round, &there, &back, &after);
	if (!there.moved || !back.moved)
		die(EXIT_FAILED, "%s: nothing moved: %s", config->label,
		    strerror(there.moved ? back.first_error : there.first_error));
}

static void set_up(struct bench *bench)
{
	const struct options *options = &bench->options;
	struct move_result placed;

	bench->renew = memory_must_renew(options);
	memory_open(&bench->memory, options);
	if (options->read_only)
		memory_protect(&bench->memory);
	moveset_init(&bench->set, bench->memory.base, bench->memory.bytes,
		     options->folio_bytes * order_step(options->order));
	if (options->order == ORDER_RANDOM)
		moveset_shuffle(&bench->set);
	placed = moveset_move(&bench->set, options->from, MPOL_MF_MOVE, 0);
	if (placed.failed)
		die(EXIT_FAILED, "%zu of %zu folios cannot be placed on node %d: %s", placed.failed,
		    bench->set.count, options->from, strerror(placed.first_error));
	/* The file system decides which folios a file gets, so another size is a missing feature. */
	memory_require_folios(&bench->memory, options, "before the first sample",
			      options->kind == KIND_FILE ? EXIT_MISSING : EXIT_FAILED);
}

int main(int argc, char **argv)
{
	static struct bench bench;
	const struct options *options = &bench.options;
	struct json json;

	options_parse(&bench.options, argc, argv);
	/* Everything that the machine may refuse comes first, before time is spent. */
	if (geteuid())
		die(EXIT_MISSING, "needs root: it reads folio sizes and changes settings of the kernel");
	node_require("--from", options->from);
	node_require("--to", options->to);
	config_list_try(&options->configs);
	set_up(&bench);
	hogs_start(options->cpu_hogs);
	print_start(options);
	for (unsigned int round = 0; round < options->warmup + options->samples; round++)
		for (size_t i = 0; i < options->configs.count; i++)
			take_sample(&bench, &options->configs.all[i], round);
	pattern_verify(&bench.memory.content);
	memory_require_folios(&bench.memory, options, "after the last sample", EXIT_FAILED);
	moveset_free(&bench.set);
	memory_close(&bench.memory, options);
	json_begin(&json, "end");
	json_end(&json);
	return EXIT_PASSED;
}
