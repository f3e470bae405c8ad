// SPDX-License-Identifier: GPL-2.0
#include "result.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

static struct verdict verdict(enum exit_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

static struct verdict verdict(enum exit_status status, const char *format, ...)
{
	struct verdict verdict = { .status = status };
	va_list args;

	va_start(args, format);
	vsnprintf(verdict.reason, sizeof(verdict.reason), format, args);
	va_end(args);
	return verdict;
}

static bool too_few(uint64_t count, uint64_t rounds, unsigned int percent)
{
	return count * 100 < rounds * percent;
}

/* A round that did not defer, or whose event was something else, has tested nothing. */
static struct verdict of_shares(const struct event *event, const struct options *options, const struct report *report)
{
	if (too_few(report->acted, report->rounds, event->acted))
		return verdict(EXIT_FAILED, "the event was what it should be in only %" PRIu64 " of %" PRIu64 " rounds",
			       report->acted, report->rounds);
	if (options->off)
		return verdict(EXIT_PASSED, "%s", "");
	if (too_few(report->deferred, report->rounds, event->deferred))
		return verdict(EXIT_FAILED, "only %" PRIu64 " of %" PRIu64 " rounds deferred a flush", report->deferred,
			       report->rounds);
	if (event->never_deferred && report->deferred)
		return verdict(EXIT_FAILED, "%" PRIu64 " of %" PRIu64 " rounds deferred a flush, and none may",
			       report->deferred, report->rounds);
	return verdict(EXIT_PASSED, "%s", "");
}

static const char *reason_of(const struct report *report)
{
	return report->reason[0] ? report->reason : "see its last words";
}

struct verdict verdict_of(const struct event *event, const struct options *options, const struct report *report,
			  enum ending ending)
{
	/* What the machine lacks shows before anything was tried; later it would hide what was seen until then. */
	if (ending == ENDED_SKIPPED && !report->rounds && !report->stale && !report->broken)
		return verdict(EXIT_MISSING, "%s", reason_of(report));
	if (options->until_stale && report->stale)
		return verdict(EXIT_PASSED, "%s", "");
	if (ending == ENDED_LATE)
		return verdict(EXIT_FAILED, "not done after %u s and %" PRIu64 " rounds", options->limit_s,
			       report->rounds);
	if (ending == ENDED_BADLY || ending == ENDED_SKIPPED)
		return verdict(EXIT_FAILED, "it ended badly after %" PRIu64 " rounds: %s", report->rounds,
			       reason_of(report));
	if (options->until_stale)
		return verdict(EXIT_FAILED, "no stale data in %" PRIu64 " rounds, of which %" PRIu64 " deferred: %s",
			       report->rounds, report->deferred, report->reason);
	if (report->stale || report->broken)
		return verdict(EXIT_FAILED, "%s%s", report->stale ? "stale: " : "", reason_of(report));
	if (!report->rounds)
		return verdict(EXIT_FAILED, "no round was done");
	return of_shares(event, options, report);
}
