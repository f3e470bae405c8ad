// SPDX-License-Identifier: GPL-2.0
/* tlbbench: how do moves of memory slow down the threads that read it? */
#include <unistd.h>

#include "folio.h"
#include "json.h"
#include "migration.h"
#include "processes.h"
#include "readers.h"
#include "sample.h"
#include "tiering.h"
#include "util.h"
#include "workload.h"

/* Everything that the machine may refuse is here, before time is spent. */
static void set_up_machine(const struct options *options)
{
	const struct workload *workload = options->workload;

	if (geteuid() && !options->flat)
		die(EXIT_MISSING, "needs root: it changes settings of the kernel");
	migrc_apply(&options->migrc);
	if (options->flat)
		return;
	node_require("--from", options->from);
	node_require("--to", options->to);
	if (workload->tiered) {
		tiering_require(options->from, options->to);
		tiering_enable(workload->scan_ms);
	} else {
		/* Hinting faults would move pages beside those that are counted. */
		tiering_disable();
	}
}

static void print_start(const struct options *options)
{
	struct json json;

	json_begin(&json, "start");
	json_text(&json, "workload", options->workload->name);
	json_text(&json, "kind", target_kind_names[options->kind]);
	json_int(&json, "bytes", options->bytes);
	json_int(&json, "moves", options->moves);
	json_int(&json, "from", options->from);
	json_int(&json, "to", options->to);
	if (options->processes)
		json_int(&json, "processes", options->processes);
	else
		json_int(&json, "readers", options->readers);
	json_end(&json);
}

static void start_readers(const struct options *options, const struct target *target)
{
	if (options->processes)
		processes_start(target, options->processes, options->calls_per_second);
	else
		readers_start(target, options->readers, options->workload->windows);
}

static void stop_readers(const struct options *options)
{
	if (options->processes)
		processes_stop();
	else
		readers_stop();
}

static void run_with_readers(const struct options *options)
{
	const struct workload *workload = options->workload;
	static struct state before;
	struct target target;
	struct work work;

	print_start(options);
	if (workload->tiered)
		tiering_hold(options->from);
	target_open(&target, options->kind, options->bytes, options->from, options->file, workload->holes);
	if (workload->tiered)
		tiering_offer(target.base, target.bytes, options->from, options->to);
	start_readers(options, &target);
	/* Reclaim demotes all pages but those that are read. */
	if (workload->tiered)
		tiering_demote(options->from, target.bytes);
	sample_begin(&before, options);
	work = workload->run(&target, options);
	sample_end(&before, &work, options);
	stop_readers(options);
	target_verify(&target);
	target_close(&target);
}

int main(int argc, char **argv)
{
	static struct options options;
	struct json json;

	options_parse(&options, argc, argv);
	set_up_machine(&options);
	if (options.workload->measure)
		options.workload->measure(&options);
	else
		run_with_readers(&options);
	json_begin(&json, "end");
	json_end(&json);
	return EXIT_PASSED;
}
