// SPDX-License-Identifier: GPL-2.0
#include "report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "json.h"

#define MOST_FAILED 64

static bool ktap;
static unsigned int tests_done;

void report_begin(const struct options *options, unsigned int tests)
{
	struct json json;

	ktap = options->ktap;
	if (ktap) {
		json_prefix = "# ";
		printf("KTAP version 1\n1..%u\n", tests);
	}
	json_begin(&json, "start");
	json_int(&json, "seconds", options->seconds);
	json_int(&json, "bytes", options->bytes);
	json_int(&json, "threads", options->threads);
	json_int(&json, "movers", options->movers);
	json_int(&json, "from", options->nodes[0]);
	json_int(&json, "to", options->nodes[1]);
	json_int(&json, "seed", options->seed);
	json_text(&json, "only", options->only ? options->only : "");
	json_text(&json, "file", options->file ? options->file : "");
	json_text(&json, "module", options->module ? options->module : "");
	json_flag(&json, "switch", options->switch_migrator);
	json_int(&json, "switches", options->switches);
	json_int(&json, "in_runs", options->in_runs);
	json_int(&json, "rest_ms", options->rest_ms);
	json_end(&json);
}

void report_absent(const char *what, const char *reason)
{
	struct json json;

	json_begin(&json, "absent");
	json_text(&json, "memory", what);
	json_text(&json, "reason", reason);
	json_end(&json);
}

/* Tests that have reported an error. */
static const char *failed_tests[MOST_FAILED];
static atomic_uint failed_count;

static void fail(struct test_memory *mem, const char *by)
{
	unsigned int slot = atomic_fetch_add(&failed_count, 1);

	if (slot < MOST_FAILED)
		failed_tests[slot] = by;
	atomic_fetch_add(&mem->errors, 1);
	atomic_store(&mem->stop, true);
}

void report_wrong(struct test_memory *mem, const struct area *area, const struct mismatch *wrong,
		  const char *by)
{
	char expected[80], found[80];
	struct json json;

	stamp_describe(wrong->expected, expected, sizeof(expected));
	stamp_describe(wrong->found, found, sizeof(found));
	json_begin(&json, "wrong");
	json_text(&json, "by", by);
	json_text(&json, "area", area->name);
	json_int(&json, "page", wrong->page);
	json_int(&json, "offset", wrong->word * sizeof(uint64_t));
	json_text(&json, "expected", expected);
	json_text(&json, "found", found);
	json_end(&json);
	fprintf(stderr, "integrity: %s: wrong byte in page %u (area %s) at offset %zu: expected %s, found %s\n",
		by, wrong->page, area->name, wrong->word * sizeof(uint64_t), expected, found);
	fail(mem, by);
}

void report_broken(struct test_memory *mem, const char *by, const char *format, ...)
{
	char text[512];
	struct json json;
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	json_begin(&json, "broken");
	json_text(&json, "by", by);
	json_text(&json, "message", text);
	json_end(&json);
	fprintf(stderr, "integrity: %s: %s\n", by, text);
	fail(mem, by);
}

static void print_ktap(const char *name, enum outcome outcome, const char *reason)
{
	static const char *const results[] = {
		[PASSED] = "ok", [FAILED] = "not ok", [SKIPPED] = "ok",
	};

	printf("%s %u %s%s%s\n", results[outcome], ++tests_done, name,
	       outcome == SKIPPED ? " # SKIP " : reason ? " # " : "", reason ? reason : "");
	fflush(stdout);
}

void report_test(const char *name, enum outcome outcome, int64_t ops, const char *reason)
{
	static const char *const words[] = {
		[PASSED] = "passed", [FAILED] = "failed", [SKIPPED] = "skipped",
	};
	struct json json;

	for (unsigned int i = 0; i < MOST_FAILED && failed_tests[i]; i++)
		if (!strcmp(failed_tests[i], name))
			outcome = FAILED;
	json_begin(&json, "test");
	json_text(&json, "name", name);
	json_text(&json, "status", words[outcome]);
	if (ops >= 0)
		json_int(&json, "ops", ops);
	if (reason)
		json_text(&json, "reason", reason);
	json_end(&json);
	if (ktap)
		print_ktap(name, outcome, reason);
}
