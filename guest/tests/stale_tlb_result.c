// SPDX-License-Identifier: GPL-2.0
#include "../stale_tlb/result.h"
#include "tests.h"
#include "util.h"

#define ROUNDS 10

static const struct test plain_test = { .name = "plain", .min_deferred = 50, .min_triggered = 50 };
static const struct test undeferred_test = { .name = "undeferred", .never_deferred = true };
static const struct report good = { .rounds = ROUNDS, .deferred = ROUNDS, .triggered = ROUNDS };

static enum exit_status test_status(const struct test *test, struct report report, enum exit_kind exit_kind,
				  bool until_stale)
{
	struct options options = { .until_stale = until_stale };

	return result_of(test, &options, &report, exit_kind).status;
}

static enum exit_status plain_status(struct report report, enum exit_kind exit_kind)
{
	return test_status(&plain_test, report, exit_kind, false);
}

void test_stale_tlb_result(void)
{
	struct report stale = good, undeferred = good, untriggered = good, none = { 0 }, error = { .errors = 1 };

	stale.stale = 1;
	undeferred.deferred = 4;
	untriggered.triggered = 4;
	check_true(plain_status(good, EXIT_KIND_PASSED) == EXIT_PASSED, "a test without stale data passes");
	check_true(plain_status(stale, EXIT_KIND_PASSED) == EXIT_FAILED, "stale data fails");
	check_true(test_status(&plain_test, stale, EXIT_KIND_PASSED, true) == EXIT_PASSED, "--until-stale: it passes");
	check_true(test_status(&plain_test, good, EXIT_KIND_PASSED, true) == EXIT_FAILED, "--until-stale: none fails");
	check_true(plain_status(undeferred, EXIT_KIND_PASSED) == EXIT_FAILED, "too few rounds with a deferral fail");
	check_true(plain_status(untriggered, EXIT_KIND_PASSED) == EXIT_FAILED, "too few triggered rounds fail");
	check_true(plain_status(none, EXIT_KIND_PASSED) == EXIT_FAILED, "no rounds at all fail");
	check_true(test_status(&undeferred_test, good, EXIT_KIND_PASSED, false) == EXIT_FAILED,
		   "a deferral fails where none is allowed");
	check_true(plain_status(good, EXIT_KIND_ERROR) == EXIT_FAILED, "a crash fails");
	check_true(plain_status(good, EXIT_KIND_TIMEOUT) == EXIT_FAILED, "a hang fails");
	check_true(plain_status(none, EXIT_KIND_SKIPPED) == EXIT_MISSING, "a skip before the first round is a skip");
	check_true(plain_status(good, EXIT_KIND_SKIPPED) == EXIT_FAILED, "a skip after a round fails");
	check_true(plain_status(error, EXIT_KIND_SKIPPED) == EXIT_FAILED, "a skip after an error fails");
}
