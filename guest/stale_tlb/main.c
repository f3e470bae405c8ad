// SPDX-License-Identifier: GPL-2.0
/* stale_tlb: check that no CPU reads stale data through a TLB entry whose flush was deferred. */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"
#include "folio.h"
#include "json.h"
#include "migration.h"
#include "result.h"
#include "sysfs.h"
#include "util.h"

#define MAX_ERRORS 10		/* in rounds of a test, before it ends */
#define STEP_NS 5000000
#define MOST_TIMES 16		/* the rounds that were asked for */
#define SLOW_SHARE 10		/* of the rounds that were asked for, one */

static const struct test *const families[] = {
	anon_tests, file_tests, in_flight_tests, reuse_tests, lost_write_tests, large_tests, ksm_tests, uffd_tests,
	swap_tests, child_tests, hwpoison_tests, hotplug_tests, quarantine_tests, uprobe_tests,
};

#define MAX_TESTS 64

static const struct test *chosen[MAX_TESTS];
static size_t chosen_count;
static cpu_set_t all_cpus;

/* Visit each test that `names` lists; "all" stands for all that are not hidden. Ends the program at an unknown name. */
static void for_each(const char *option, const char *names, void (*visit)(const struct test *test))
{
	char *copy = strdup(names), *rest = copy, *name;

	while (copy && (name = strtok_r(rest, ",", &rest))) {
		bool all = !strcmp(name, "all"), found = all;

		for (size_t family = 0; family < ARRAY_SIZE(families); family++)
			for (const struct test *test = families[family]; test->name; test++)
				if ((all && !test->hidden) || !strcmp(name, test->name)) {
					visit(test);
					found = true;
				}
		if (!found)
			die(EXIT_USAGE, "%s: no test is called '%s'; see stale_tlb --list", option, name);
	}
	free(copy);
}

static void choose(const struct test *test)
{
	if (chosen_count == MAX_TESTS)
		die(EXIT_USAGE, "--test: more than %d", MAX_TESTS);
	chosen[chosen_count++] = test;
}

static void drop(const struct test *test)
{
	size_t kept = 0;

	for (size_t i = 0; i < chosen_count; i++)
		if (chosen[i] != test)
			chosen[kept++] = chosen[i];
	chosen_count = kept;
}

static void choose_all(const struct options *options)
{
	for_each("--test", options->tests, choose);
	if (options->except)
		for_each("--except", options->except, drop);
	if (!chosen_count)
		die(EXIT_USAGE, "--test: no test is left");
}

static void list(void)
{
	for (size_t family = 0; family < ARRAY_SIZE(families); family++)
		for (const struct test *test = families[family]; test->name; test++)
			printf("%-18s %s%s\n", test->name, test->description, test->hidden ? " (not in all)" : "");
}

static void check_machine(const struct options *options)
{
	if (geteuid())
		die(EXIT_MISSING, "needs root to read frame numbers, to move shared pages and to change settings");
	node_require("--from", options->nodes[0]);
	node_require("--to", options->nodes[1]);
	if (options->off && !migrc_present())
		return;
	if (!migrc_present())
		die(EXIT_MISSING, "no %s/enabled: this kernel has no migrc, or use --off", MIGRC_DIR);
	if (!migrc_set("enabled", options->off ? "0" : "1"))
		die(EXIT_FAILED, "%s/enabled: %m", MIGRC_DIR);
}

/* On a busy host a short window may take more rounds than were asked for until the test has seen enough of it. */
static bool wants_round(const struct test *test, const struct options *options, const struct report *report)
{
	unsigned int rounds = test->slow ? (options->rounds + SLOW_SHARE - 1) / SLOW_SHARE : options->rounds;

	if (report->errors >= MAX_ERRORS || (report->stale && options->until_stale))
		return false;
	if (report->rounds < rounds)
		return true;
	return !options->until_stale && !report->stale && !report->errors &&
	       report->rounds < MOST_TIMES * rounds &&
	       result_of(test, options, report, EXIT_KIND_PASSED).status == EXIT_FAILED;
}

/* Run all rounds of a test, in a process of its own. */
static _Noreturn void test_main(const struct test *test, const struct options *options, struct report *report)
{
	struct fixture *fx = mmap(NULL, sizeof(*fx), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sysfs_disown();
	sched_setaffinity(0, sizeof(all_cpus), &all_cpus);
	if (fx == MAP_FAILED)
		die(EXIT_FAILED, "no shared memory: %m");
	fixture_setup(fx, test, options, report);
	while (wants_round(test, options, report))
		fixture_run_round(fx);
	fixture_teardown(fx);
	exit(EXIT_PASSED);
}

static enum exit_kind wait_for_test(pid_t child, unsigned int limit_s)
{
	uint64_t until = clock_ns() + limit_s * UINT64_C(1000000000);
	int status;

	while (!waitpid(child, &status, WNOHANG)) {
		if (clock_ns() > until) {
			kill(child, SIGKILL);
			waitpid(child, &status, 0);
			return EXIT_KIND_TIMEOUT;
		}
		sleep_ns(STEP_NS);
	}
	if (!WIFEXITED(status))
		return EXIT_KIND_ERROR;
	switch (WEXITSTATUS(status)) {
	case EXIT_PASSED: return EXIT_KIND_PASSED;
	case EXIT_MISSING: return EXIT_KIND_SKIPPED;
	default: return EXIT_KIND_ERROR;
	}
}

static void print_json(const struct test *test, const struct report *report, const struct result *result,
		       uint64_t ns)
{
	static const char *const words[] = {
		[EXIT_PASSED] = "passed", [EXIT_FAILED] = "failed", [EXIT_MISSING] = "skipped",
	};
	struct json json;

	json_begin(&json, "test");
	json_text(&json, "name", test->name);
	json_text(&json, "status", words[result->status]);
	json_int(&json, "rounds", report->rounds);
	json_int(&json, "deferred", report->deferred);
	json_int(&json, "triggered", report->triggered);
	json_int(&json, "moved", report->moved);
	json_int(&json, "stale", report->stale);
	json_int(&json, "errors", report->errors);
	json_int(&json, "duration_ms", ns / 1000000);
	json_text(&json, "reason", report->stale ? report->reason : result->reason);
	json_end(&json);
}

static void print_ktap(const struct test *test, size_t number, const struct result *result)
{
	printf("%s %zu %s", result->status == EXIT_FAILED ? "not ok" : "ok", number, test->name);
	if (result->status == EXIT_MISSING)
		printf(" # SKIP %s", result->reason);
	printf("\n");
	fflush(stdout);
}

static enum exit_status run(const struct test *test, const struct options *options, size_t number)
{
	struct report *report = mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t start = clock_ns();
	struct result result;
	pid_t child;
	int cpu = 0;

	if (report == MAP_FAILED)
		die(EXIT_FAILED, "no shared memory: %m");
	fflush(stdout);
	child = fork();
	if (!child)
		test_main(test, options, report);
	if (child < 0)
		die(EXIT_FAILED, "fork: %m");
	/* Stay on the CPU of the test's main thread: on the reader's CPU this process would evict TLB entries. */
	while (!CPU_ISSET(cpu, &all_cpus))
		cpu++;
	cpu_pin(cpu);
	result = result_of(test, options, report, wait_for_test(child, options->limit_s));
	print_json(test, report, &result, clock_ns() - start);
	if (options->ktap)
		print_ktap(test, number, &result);
	munmap(report, sizeof(*report));
	return result.status;
}

int main(int argc, char **argv)
{
	struct options options;
	size_t failed = 0, skipped = 0;

	options_parse(&options, argc, argv);
	if (options.list) {
		list();
		return EXIT_PASSED;
	}
	choose_all(&options);
	if (sched_getaffinity(0, sizeof(all_cpus), &all_cpus))
		die(EXIT_FAILED, "sched_getaffinity: %m");
	check_machine(&options);
	if (options.ktap) {
		printf("KTAP version 1\n1..%zu\n", chosen_count);
		json_prefix = "# ";
	}
	for (size_t i = 0; i < chosen_count; i++) {
		enum exit_status status = run(chosen[i], &options, i + 1);

		failed += status == EXIT_FAILED;
		skipped += status == EXIT_MISSING;
	}
	if (failed)
		return EXIT_FAILED;
	return skipped == chosen_count ? EXIT_MISSING : EXIT_PASSED;
}
