// SPDX-License-Identifier: GPL-2.0
/* xslookup: how fast is a program that reads a large table at random, while the kernel moves it between tiers? */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "clock.h"
#include "events.h"
#include "json.h"
#include "lookup.h"
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

static void print_migrc(struct json *json)
{
	uint64_t value;

	if (migrc_value("enabled", &value))
		json_int(json, "migrc_enabled", value);
	if (migrc_value("max_bytes", &value))
		json_int(json, "migrc_max_bytes", value);
	if (migrc_value("peak_bytes", &value))
		json_int(json, "migrc_peak_bytes", value);
}

static void take_sample(const struct options *options, const struct table *table)
{
	uint64_t lookups = options->lookups * options->threads, start, ns, hash;
	static struct events before, after;
	struct json json;
	char text[32];

	events_read(&before);
	start = clock_ns();
	hash = lookups_run(table, options->threads, options->lookups, options->round);
	ns = clock_ns() - start;
	events_read(&after);
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
	print_migrc(&json);
	events_print(&json, "", &before, &after);
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
