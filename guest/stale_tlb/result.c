// SPDX-License-Identifier: GPL-2.0
#include "result.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

static struct result make_result(enum exit_status status, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static struct result make_result(enum exit_status status, const char *format, ...)
{
	struct result result = { .status = status };
	va_list args;

	va_start(args, format);
	vsnprintf(result.reason, sizeof(result.reason), format, args);
	va_end(args);
	return result;
}

static bool too_few(uint64_t count, uint64_t rounds, unsigned int percent)
{
	return count * 100 < rounds * percent;
}

/* A round tests nothing if it deferred no flush or if its trigger did not work. */
static struct result check_rounds(const struct test *test, const struct options *options, const struct report *report)
{
	if (too_few(report->triggered, report->rounds, test->min_triggered))
		return make_result(EXIT_FAILED, "the trigger worked in only %" PRIu64 " of %" PRIu64 " rounds",
				   report->triggered, report->rounds);
	if (options->off)
		return make_result(EXIT_PASSED, "%s", "");
	if (too_few(report->deferred, report->rounds, test->min_deferred))
		return make_result(EXIT_FAILED, "only %" PRIu64 " of %" PRIu64 " rounds deferred a flush",
				   report->deferred, report->rounds);
	if (test->never_deferred && report->deferred)
		return make_result(EXIT_FAILED, "%" PRIu64 " of %" PRIu64 " rounds deferred a flush, which none may",
				   report->deferred, report->rounds);
	return make_result(EXIT_PASSED, "%s", "");
}

static const char *reason_of(const struct report *report)
{
	return report->reason[0] ? report->reason : "see its last output";
}

struct result result_of(const struct test *test, const struct options *options, const struct report *report,
			enum exit_kind exit_kind)
{
	/* Skip only before the first round: a later one would hide stale reads and errors. */
	if (exit_kind == EXIT_KIND_SKIPPED && !report->rounds && !report->stale && !report->errors)
		return make_result(EXIT_MISSING, "%s", reason_of(report));
	if (options->until_stale && report->stale)
		return make_result(EXIT_PASSED, "%s", "");
	if (exit_kind == EXIT_KIND_TIMEOUT)
		return make_result(EXIT_FAILED, "timeout after %u s and %" PRIu64 " rounds", options->limit_s,
				   report->rounds);
	if (exit_kind == EXIT_KIND_ERROR || exit_kind == EXIT_KIND_SKIPPED)
		return make_result(EXIT_FAILED, "it ended early, after %" PRIu64 " rounds: %s", report->rounds,
				   reason_of(report));
	if (options->until_stale)
		return make_result(EXIT_FAILED, "no stale data in %" PRIu64 " rounds, %" PRIu64 " of them deferred: %s",
				   report->rounds, report->deferred, report->reason);
	if (report->stale || report->errors)
		return make_result(EXIT_FAILED, "%s%s", report->stale ? "stale: " : "", reason_of(report));
	if (!report->rounds)
		return make_result(EXIT_FAILED, "it ran no round");
	return check_rounds(test, options, report);
}
