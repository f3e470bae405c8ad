// SPDX-License-Identifier: GPL-2.0
/* tlbbench: what does it cost the readers of memory that it moves? */
#include <unistd.h>

#include "json.h"
#include "migrc.h"
#include "node.h"
#include "quit.h"
#include "readers.h"
#include "sample.h"
#include "tiering.h"
#include "workload.h"

/* The kernel's own pace at its fastest. Each look flushes, which nobody can avoid. */
#define SCAN_MS 1000

/* Everything that can be refused is refused here, before time is spent. */
static void set_up_machine(const struct options *options)
{
	if (geteuid())
		quit(EXIT_MISSING, "needs root: settings are not for everyone");
	node_require("--from", options->from);
	node_require("--to", options->to);
	migrc_grant(&options->migrc);
	if (options->workload->tiered) {
		tiering_require(options->from, options->to);
		tiering_enable(SCAN_MS);
		tiering_hold(options->from);
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
	json_text(&json, "kind", options->kind_name);
	json_int(&json, "bytes", options->bytes);
	json_int(&json, "moves", options->moves);
	json_int(&json, "from", options->from);
	json_int(&json, "to", options->to);
	json_int(&json, "readers", options->readers);
	json_int(&json, "settle_ms", options->settle_ms);
	json_end(&json);
}

static void measure(const struct target *target, const struct options *options)
{
	static struct state before, after, settled;
	struct work work;
	int64_t drained_ms;

	/* What the preparation owes is not the sample's, nor is the memory that waits for it kept by the sample. */
	migrc_write("drain", "1");
	state_read(&before, options);
	work = options->workload->run(target, options);
	state_read(&after, options);
	/* What is still owed belongs to the sample, and is not waited for until it is old. */
	work.ns += migrc_settle();
	drained_ms = settle(options);
	state_read(&settled, options);
	readers_stop();
	target_verify(target);
	if (!work.moved)
		quit(EXIT_FAILED, "no page moved");
	sample_print(options, &work, &before, &after, &settled, drained_ms);
}

int main(int argc, char **argv)
{
	static struct options options;
	const struct workload *workload;
	struct target target;
	struct json json;

	options_parse(&options, argc, argv);
	workload = options.workload;
	set_up_machine(&options);
	print_start(&options);
	target_open(&target, options.kind, options.bytes, options.from, options.file, workload->holes);
	if (workload->tiered)
		tiering_offer(target.base, target.bytes, options.from, options.to);
	readers_start(&target, options.readers, workload->windows);
	if (workload->prepare)
		workload->prepare(&target, &options);
	measure(&target, &options);
	target_close(&target);
	json_begin(&json, "end");
	json_end(&json);
	return EXIT_PASSED;
}
