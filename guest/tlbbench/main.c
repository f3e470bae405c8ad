// SPDX-License-Identifier: GPL-2.0
/* tlbbench: how do moves of memory slow down the threads that read it? */
#include <unistd.h>

#include "folio.h"
#include "json.h"
#include "migration.h"
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
	json_int(&json, "readers", options->readers);
	json_int(&json, "settle_ms", options->settle_ms);
	json_end(&json);
}

static void measure(const struct options *options, const struct target *target)
{
	static struct state before, after, settled;
	struct work work;
	int64_t drained_ms;

	/* Flushes that the preparation deferred, and the memory in quarantine for them, do not belong to the sample. */
	migrc_write("drain", "1");
	state_read(&before, options);
	work = options->workload->run(target, options);
	state_read(&after, options);
	/* Flushes that are still pending belong to the sample; it does not wait until their pages are old. */
	work.ns += migrc_drain();
	drained_ms = settle(options);
	state_read(&settled, options);
	readers_stop();
	target_verify(target);
	if (!work.moved)
		die(EXIT_FAILED, "no page moved");
	sample_print(options, &work, &before, &after, &settled, drained_ms);
}

static void run_with_readers(const struct options *options)
{
	const struct workload *workload = options->workload;
	struct target target;

	print_start(options);
	if (workload->tiered)
		tiering_hold(options->from);
	target_open(&target, options->kind, options->bytes, options->from, options->file, workload->holes);
	if (workload->tiered)
		tiering_offer(target.base, target.bytes, options->from, options->to);
	readers_start(&target, options->readers, workload->windows);
	/* Reclaim demotes all pages but those that are read. */
	if (workload->tiered)
		tiering_demote(options->from, target.bytes);
	measure(options, &target);
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
