// SPDX-License-Identifier: GPL-2.0
#include "sample.h"

#include "folio.h"
#include "util.h"

static void state_read(struct state *state, const struct options *options)
{
	counters_read(&state->counters);
	state->free_from_kb = node_free_kb(options->from);
	state->free_to_kb = node_free_kb(options->to);
	state->free_kb = nodes_free_kb();
}

void sample_begin(struct state *before, const struct options *options)
{
	migrc_write("drain", "1");
	state_read(before, options);
}

static void print_free(struct json *json, const char *from, const char *to, const char *all,
		       const struct state *state)
{
	json_int(json, from, state->free_from_kb);
	json_int(json, to, state->free_to_kb);
	json_int(json, all, state->free_kb);
}

static void print_work(struct json *json, const struct options *options, const struct work *work)
{
	json_text(json, "workload", options->workload->name);
	json_int(json, "round", options->round);
	json_int(json, "asked_pages", options->moves);
	json_int(json, "moved_pages", work->moved);
	json_int(json, "failed_pages", work->failed);
	json_int(json, "elapsed_ns", work->ns);
	if (options->order)
		json_int(json, "order", options->order);
	if (!work->calls)
		return;
	json_int(json, "processes", options->processes);
	json_int(json, "calls", work->calls);
	json_int(json, "calls_per_second", work->calls_per_second);
}

void sample_end(const struct state *before, struct work *work, const struct options *options)
{
	static struct state after, settled;
	struct json json;

	state_read(&after, options);
	work->ns += migrc_drain();
	state_read(&settled, options);
	if (!work->moved)
		die(EXIT_FAILED, "no page moved");
	json_begin(&json, "sample");
	print_work(&json, options, work);
	print_free(&json, "before_free_from_kb", "before_free_to_kb", "before_free_kb", before);
	print_free(&json, "after_free_from_kb", "after_free_to_kb", "after_free_kb", &after);
	print_free(&json, "settled_free_from_kb", "settled_free_to_kb", "settled_free_kb", &settled);
	migrc_print(&json);
	counters_print(&json, "", &before->counters, &after.counters);
	counters_print(&json, "settled_", &before->counters, &settled.counters);
	json_end(&json);
}
