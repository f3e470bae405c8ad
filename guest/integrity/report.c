// SPDX-License-Identifier: GPL-2.0
#include "report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "json.h"

#define MOST_BLAMED 64

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

/* Who has found something wrong: their tests have failed. */
static const char *blamed[MOST_BLAMED];
static atomic_uint blamed_count;

static bool is_blamed(const char *name)
{
	for (unsigned int i = 0; i < MOST_BLAMED && blamed[i]; i++)
		if (!strcmp(blamed[i], name))
			return true;
	return false;
}

static void fail(struct arena *arena, const char *by)
{
	unsigned int slot = atomic_fetch_add(&blamed_count, 1);

	if (slot < MOST_BLAMED)
		blamed[slot] = by;
	atomic_fetch_add(&arena->errors, 1);
	atomic_store(&arena->stop, true);
}

void report_wrong(struct arena *arena, const struct area *area, const struct mismatch *wrong,
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
	fail(arena, by);
}

void report_broken(struct arena *arena, const char *by, const char *format, ...)
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
	fail(arena, by);
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

void report_test(const char *name, enum outcome outcome, int64_t acts, const char *reason)
{
	static const char *const words[] = {
		[PASSED] = "passed", [FAILED] = "failed", [SKIPPED] = "skipped",
	};
	struct json json;

	if (is_blamed(name))
		outcome = FAILED;
	json_begin(&json, "test");
	json_text(&json, "name", name);
	json_text(&json, "status", words[outcome]);
	if (acts >= 0)
		json_int(&json, "acts", acts);
	if (reason)
		json_text(&json, "reason", reason);
	json_end(&json);
	if (ktap)
		print_ktap(name, outcome, reason);
}
