// SPDX-License-Identifier: GPL-2.0
#include "../stale_tlb/result.h"
#include "tests.h"
#include "util.h"

static const struct event quiet_event = { .name = "quiet", .deferred = 50, .acted = 50 };
static const struct event refused_event = { .name = "refused", .never_deferred = true };

static enum exit_status verdict_on(const struct event *event, struct report report, enum ending ending, bool hoped)
{
	struct options options = { .until_stale = hoped };

	return verdict_of(event, &options, &report, ending).status;
}

#define ROUNDS 10
#define GOOD { .rounds = ROUNDS, .deferred = ROUNDS, .acted = ROUNDS }

void test_verdict(void)
{
	struct report good = GOOD, stale = GOOD, idle = GOOD, odd = GOOD, none = { 0 }, early = { .broken = 1 };

	stale.stale = 1;
	idle.deferred = 4;
	odd.acted = 4;
	check_true(verdict_on(&quiet_event, good, ENDED_WELL, false) == EXIT_PASSED, "nothing stale passes");
	check_true(verdict_on(&quiet_event, stale, ENDED_WELL, false) == EXIT_FAILED, "stale data fails");
	check_true(verdict_on(&quiet_event, stale, ENDED_WELL, true) == EXIT_PASSED, "unless it is hoped for");
	check_true(verdict_on(&quiet_event, good, ENDED_WELL, true) == EXIT_FAILED, "and does not come");
	check_true(verdict_on(&quiet_event, idle, ENDED_WELL, false) == EXIT_FAILED, "rounds without deferral fail");
	check_true(verdict_on(&quiet_event, odd, ENDED_WELL, false) == EXIT_FAILED, "so do those of another event");
	check_true(verdict_on(&quiet_event, none, ENDED_WELL, false) == EXIT_FAILED, "and no rounds at all");
	check_true(verdict_on(&refused_event, good, ENDED_WELL, false) == EXIT_FAILED, "and deferral where none may be");
	check_true(verdict_on(&quiet_event, good, ENDED_BADLY, false) == EXIT_FAILED, "a crash fails");
	check_true(verdict_on(&quiet_event, good, ENDED_LATE, false) == EXIT_FAILED, "a hang fails");
	check_true(verdict_on(&quiet_event, none, ENDED_SKIPPED, false) == EXIT_MISSING, "a skip is a skip");
	check_true(verdict_on(&quiet_event, good, ENDED_SKIPPED, false) == EXIT_FAILED, "but not after rounds were done");
	check_true(verdict_on(&quiet_event, early, ENDED_SKIPPED, false) == EXIT_FAILED, "nor once something was wrong");
}
