// SPDX-License-Identifier: GPL-2.0
#include "../stale_tlb/result.h"
#include "tests.h"
#include "util.h"

static const struct test quiet_test = { .name = "quiet", .min_deferred = 50, .min_triggered = 50 };
static const struct test refused_test = { .name = "refused", .never_deferred = true };

static enum exit_status verdict_on(const struct test *test, struct report report, enum exit_kind exit_kind, bool hoped)
{
	struct options options = { .until_stale = hoped };

	return result_of(test, &options, &report, exit_kind).status;
}

#define ROUNDS 10
#define GOOD { .rounds = ROUNDS, .deferred = ROUNDS, .triggered = ROUNDS }

void test_verdict(void)
{
	struct report good = GOOD, stale = GOOD, idle = GOOD, odd = GOOD, none = { 0 }, early = { .errors = 1 };

	stale.stale = 1;
	idle.deferred = 4;
	odd.triggered = 4;
	check_true(verdict_on(&quiet_test, good, EXIT_KIND_PASSED, false) == EXIT_PASSED, "nothing stale passes");
	check_true(verdict_on(&quiet_test, stale, EXIT_KIND_PASSED, false) == EXIT_FAILED, "stale data fails");
	check_true(verdict_on(&quiet_test, stale, EXIT_KIND_PASSED, true) == EXIT_PASSED, "unless it is hoped for");
	check_true(verdict_on(&quiet_test, good, EXIT_KIND_PASSED, true) == EXIT_FAILED, "and does not come");
	check_true(verdict_on(&quiet_test, idle, EXIT_KIND_PASSED, false) == EXIT_FAILED, "rounds without deferral fail");
	check_true(verdict_on(&quiet_test, odd, EXIT_KIND_PASSED, false) == EXIT_FAILED, "so do those of another event");
	check_true(verdict_on(&quiet_test, none, EXIT_KIND_PASSED, false) == EXIT_FAILED, "and no rounds at all");
	check_true(verdict_on(&refused_test, good, EXIT_KIND_PASSED, false) == EXIT_FAILED, "and deferral where none may be");
	check_true(verdict_on(&quiet_test, good, EXIT_KIND_ERROR, false) == EXIT_FAILED, "a crash fails");
	check_true(verdict_on(&quiet_test, good, EXIT_KIND_TIMEOUT, false) == EXIT_FAILED, "a hang fails");
	check_true(verdict_on(&quiet_test, none, EXIT_KIND_SKIPPED, false) == EXIT_MISSING, "a skip is a skip");
	check_true(verdict_on(&quiet_test, good, EXIT_KIND_SKIPPED, false) == EXIT_FAILED, "but not after rounds were done");
	check_true(verdict_on(&quiet_test, early, EXIT_KIND_SKIPPED, false) == EXIT_FAILED, "nor once something was wrong");
}
