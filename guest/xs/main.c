// SPDX-License-Identifier: GPL-2.0
/* xslookup: how fast is a program that reads a large table at random, while the kernel moves it between tiers? */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "clock.h"
#include "events.h"
#include "json.h"
#include "lookup.h"
#include "migrc.h"
#include "node.h"
#include "options.h"
#include "quit.h"
#include "table.h"
#include "tiering.h"

/* Ten times the kernel's pace, since the guest has minutes. */
#define SCAN_MS 100

/* Everything that can be refused is refused here, before time is spent. */
static void set_up_machine(const struct options *options)
{
	if (options->tiered && geteuid())
		quit(EXIT_MISSING, "needs root: settings are not for everyone");
	migrc_grant(&options->migrc);
	if (options->tiered) {
		tiering_require(options->top, options->low);
		tiering_enable(SCAN_MS);
	}
}

static void print_start(const struct options *options, const struct table *table)
{
	struct json json;

	json_begin(&json, "start");
	json_int(&json, "bytes", table->bytes);
	json_int(&json, "grid_rows", table->rows);
	json_int(&json, "threads", options->threads);
	json_int(&json, "lookups_each", options->lookups);
	json_end(&json);
}

static void take_sample(const struct options *options, const struct table *table)
{
	uint64_t lookups = options->lookups * options->threads, start, ns, hash;
	static struct events before, after, settled;
	uint64_t before_free_kb = nodes_free_kb(), settled_free_kb;
	struct json json;
	char text[32];

	events_read(&before);
	start = clock_ns();
	hash = lookups_run(table, options->threads, options->lookups, options->round);
	ns = clock_ns() - start;
	events_read(&after);
	/* What is still owed belongs to the sample. */
	ns += migrc_settle();
	events_read(&settled);
	settled_free_kb = nodes_free_kb();
	snprintf(text, sizeof(text), "%016" PRIx64, hash);
	json_begin(&json, "sample");
	json_text(&json, "workload", "xslookup");
	json_int(&json, "round", options->round);
	json_int(&json, "lookups", lookups);
	json_int(&json, "elapsed_ns", ns);
	json_int(&json, "elapsed_ms", ns / 1000000);
	json_int(&json, "lookups_per_second", ns ? lookups * UINT64_C(1000000000) / ns : 0);
	json_text(&json, "hash", text);
	json_int(&json, "free_top_kb", node_free_kb(options->top));
	json_int(&json, "free_low_kb", node_free_kb(options->low));
	json_int(&json, "before_free_kb", before_free_kb);
	json_int(&json, "settled_free_kb", settled_free_kb);
	migrc_print(&json);
	events_print(&json, "", &before, &after);
	events_print(&json, "settled_", &before, &settled);
	json_end(&json);
}

int main(int argc, char **argv)
{
	struct options options;
	struct table table;
	struct json json;

	options_parse(&options, argc, argv);
	set_up_machine(&options);
	table_open(&table, options.bytes);
	print_start(&options, &table);
	take_sample(&options, &table);
	table_close(&table);
	json_begin(&json, "end");
	json_end(&json);
	return EXIT_PASSED;
}
