// SPDX-License-Identifier: GPL-2.0
#include "sample.h"

#include "folio.h"
#include "readers.h"
#include "util.h"

#define POLL_NS 10000000

void state_read(struct state *state, const struct options *options)
{
	counters_read(&state->counters);
	state->reads = readers_reads();
	state->free_from_kb = node_free_kb(options->from);
	state->free_to_kb = node_free_kb(options->to);
	state->free_kb = nodes_free_kb();
}

int64_t settle(const struct options *options)
{
	uint64_t start = clock_ns(), wait = options->settle_ms * UINT64_C(1000000);
	int64_t drained_ms = -1;
	uint64_t held;

	while (clock_ns() - start < wait) {
		if (!migrc_value("quarantined_bytes", &held))
			held = 0;
		if (!held && drained_ms < 0)
			drained_ms = (clock_ns() - start) / 1000000;
		sleep_ns(POLL_NS);
	}
	return drained_ms;
}

static void print_free(struct json *json, const char *from, const char *to, const char *all,
		       const struct state *state)
{
	json_int(json, from, state->free_from_kb);
	json_int(json, to, state->free_to_kb);
	json_int(json, all, state->free_kb);
}

void sample_print(const struct options *options, const struct work *work, const struct state *before,
		  const struct state *after, const struct state *settled, int64_t drained_ms)
{
	struct json json;

	json_begin(&json, "sample");
	json_text(&json, "workload", options->workload->name);
	json_int(&json, "round", options->round);
	json_int(&json, "asked_pages", options->moves);
	json_int(&json, "moved_pages", work->moved);
	json_int(&json, "failed_pages", work->failed);
	json_int(&json, "elapsed_ns", work->ns);
	json_int(&json, "moves_per_second", work->ns ? work->moved * UINT64_C(1000000000) / work->ns : 0);
	json_int(&json, "reads", after->reads - before->reads);
	json_int(&json, "drained_ms", drained_ms);
	print_free(&json, "before_free_from_kb", "before_free_to_kb", "before_free_kb", before);
	print_free(&json, "after_free_from_kb", "after_free_to_kb", "after_free_kb", after);
	print_free(&json, "settled_free_from_kb", "settled_free_to_kb", "settled_free_kb", settled);
	migrc_print(&json);
	counters_print(&json, "", &before->counters, &after->counters);
	counters_print(&json, "settled_", &before->counters, &settled->counters);
	json_end(&json);
}
