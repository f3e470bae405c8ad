// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the checks that the guest programs do: a check that cannot fail is no check. They run on any machine, as any
 * user, within seconds.
 */
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../compactbench/fragment.h"
#include "../count/command.h"
#include "../integrity/span.h"
#include "../movebench/pattern.h"
#include "../tierbench/tenants.h"
#include "../tierbench/touch.h"
#include "../tlbbench/lookup.h"
#include "../tlbbench/processes.h"
#include "../tlbbench/readers.h"
#include "cmdline.h"
#include "counters.h"
#include "folio.h"
#include "histogram.h"
#include "hugetlb.h"
#include "sysfs.h"
#include "tests.h"
#include "util.h"

#define PAGES 4
#define BYTES (PAGES * PAGE_BYTES)

static char *memory;
static unsigned int failures;

void check_true(bool held, const char *what)
{
	printf("%s %s\n", held ? "ok" : "not ok", what);
	failures += !held;
}

int status_of(void (*function)(void))
{
	int status = -1;
	pid_t child = fork();

	if (child == 0) {
		if (!freopen("/dev/null", "w", stderr))
			_exit(99);
		function();
		_exit(0);
	}
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_stamp(void)
{
	struct mismatch wrong = { 0 };

	stamp_write(memory, 7, 3);
	check_true(stamp_check(memory, 7, 3, &wrong), "a stamp is recognised");
	check_true(!stamp_check(memory, 7, 2, &wrong), "an old generation is wrong");
	check_true(!stamp_check(memory, 6, 3, &wrong), "another page is wrong");
	memory[PAGE_BYTES - 1] ^= 1;
	check_true(!stamp_check(memory, 7, 3, &wrong) && wrong.word == PAGE_WORDS - 1,
		   "the last byte is checked, and its word named");
}

/* A pattern of so many generations that words were stored more than once. */
static struct pattern make_pattern(void)
{
	struct pattern pattern = { .base = memory, .bytes = BYTES };

	pattern_fill(&pattern);
	for (unsigned int i = 0; i < PAGE_WORDS + 5; i++)
		pattern_step(&pattern);
	return pattern;
}

static void verify_good(void)
{
	struct pattern pattern = make_pattern();

	pattern_verify(&pattern);
}

static void verify_flipped(void)
{
	struct pattern pattern = make_pattern();

	memory[BYTES - 1] ^= 1;
	pattern_verify(&pattern);
}

/* A copy was left out: the page has the content of one generation ago. */
static void step_after_lost_copy(void)
{
	struct pattern pattern = make_pattern();
	char before[PAGE_BYTES];

	memcpy(before, memory + PAGE_BYTES, PAGE_BYTES);
	pattern_step(&pattern);
	memcpy(memory + PAGE_BYTES, before, PAGE_BYTES);
	pattern_step(&pattern);
}

/* A word that was stored long ago, and that the next step stores. */
static void step_over_flipped(void)
{
	struct pattern pattern = make_pattern();

	memory[(pattern.last + 1) % PAGE_WORDS * sizeof(uint64_t)] ^= 1;
	pattern_step(&pattern);
}

static void refill(void)
{
	struct pattern pattern = make_pattern();

	pattern_fill(&pattern);
	pattern_step(&pattern);
	pattern_verify(&pattern);
}

static void test_pattern(void)
{
	check_true(status_of(verify_good) == EXIT_PASSED, "an intact pattern passes");
	check_true(status_of(refill) == EXIT_PASSED, "also after all words were stored again");
	check_true(status_of(verify_flipped) == EXIT_FAILED, "a flipped bit fails");
	check_true(status_of(step_after_lost_copy) == EXIT_FAILED, "a lost copy fails at the next step");
	check_true(status_of(step_over_flipped) == EXIT_FAILED, "no store hides a flipped bit");
}

static struct area area = { .name = "test", .traits = AREA_ANON, .pages = PAGES, .fd = -1 };

static struct span open_span(struct test_memory *mem)
{
	mem->generations = calloc(PAGES, sizeof(*mem->generations));
	area.base = memory;
	for (uint32_t i = 0; i < PAGES; i++)
		stamp_write(area_address(&area, i), i, 0);
	return (struct span){ mem, &area, 1, 2 };
}

static void test_span(void)
{
	struct test_memory mem = { 0 };
	struct span span = open_span(&mem), neighbour = { &mem, &area, 2, 2 };
	struct mismatch wrong;

	check_true(span_claim(&span) && !span_claim(&neighbour), "a claimed page cannot be claimed");
	span_stamp(&span);
	check_true(span_matches(&span, span_address(&span), 0, &wrong), "a span is of its generation");
	stamp_write(memory + PAGE_BYTES, 1, 0);
	check_true(!span_matches(&span, span_address(&span), 0, &wrong) && wrong.page == 1,
		   "a lost write is seen, and its page named");
	span_release(&span);
	check_true(span_claim(&neighbour), "a released page can be claimed");
	free(mem.generations);
}

static void test_areas(void)
{
	const struct options all = { .bytes = (size_t)64 << 20 }, one = { .bytes = all.bytes, .areas = "2m" };
	const struct options small = { .bytes = (size_t)11 << 20 };

	check_true(area_bytes(&all) == (size_t)8 << 20, "each of seven areas has a seventh, in whole folios");
	check_true(area_bytes(&one) == one.bytes, "one area has it all");
	check_true(!area_bytes(&small), "too few bytes for a folio in each area are noticed");
}

static struct {
	unsigned int number, choice;
	size_t bytes;
	bool flag;
	const char *list;
} parsed;

static bool is_a(const char *name)
{
	return !strcmp(name, "a");
}

static const struct {
	const char *option, *value;
	enum exit_status status;
	const char *what;
} command_lines[] = {
	{ "--bytes", "3m", EXIT_PASSED, "a size with a unit is valid" },
	{ "--choice", "second", EXIT_PASSED, "a choice by its name is valid" },
	{ "--number", "10", EXIT_PASSED, "the upper bound of a number is valid" },
	{ "--number", "11", EXIT_USAGE, "a number above it is refused" },
	{ "--number", "-1", EXIT_USAGE, "a sign is refused" },
	{ "--number", "1x", EXIT_USAGE, "text behind a number is refused" },
	{ "--bytes", "3q", EXIT_USAGE, "an unknown unit is refused" },
	{ "--bytes", "0k", EXIT_USAGE, "a size of 0 is refused" },
	{ "--choice", "third", EXIT_USAGE, "an unknown choice is refused" },
	{ "--list", "a,a", EXIT_PASSED, "a list of known names is valid" },
	{ "--list", "a,b", EXIT_USAGE, "an unknown name in a list is refused" },
	{ "--list", "", EXIT_USAGE, "an empty list is refused" },
	{ "--flag", NULL, EXIT_PASSED, "a flag without a value is valid" },
	{ "--flag", "a", EXIT_USAGE, "a flag with a value is refused" },
	{ "--number", NULL, EXIT_USAGE, "an option without its value is refused" },
	{ "--other", "1", EXIT_USAGE, "an unknown option is refused" },
}, *given;

static void parse_given(void)
{
	static const char *const choices[] = { "first", "second", NULL };
	const struct cmdline_option table[] = {
		OPT_NUMBER("number", "N", &parsed.number, 1, 10, "a number"),
		OPT_SIZE("bytes", &parsed.bytes, "a size"),
		OPT_CHOICE("choice", "NAME", &parsed.choice, choices, "a choice"),
		OPT_FLAG("flag", &parsed.flag, "a flag"),
		OPT_LIST("list", "A,...", &parsed.list, is_a, "a list"),
		{ 0 }
	};
	char *argv[] = { "tests", (char *)given->option, (char *)given->value, NULL };

	optind = 1;
	cmdline_parse("tests", table, given->value ? 3 : 2, argv);
}

static void test_cmdline(void)
{
	char word[16];

	for (given = command_lines; given < command_lines + ARRAY_SIZE(command_lines); given++) {
		check_true(status_of(parse_given) == (int)given->status, given->what);
		if (given < command_lines + 2)
			parse_given();
	}
	check_true(parsed.bytes == (size_t)3 << 20, "3m is three mebibytes");
	check_true(parsed.choice == 1, "a choice gives its index");
	check_true(cmdline_in_list("ab,a", "a") && !cmdline_in_list("ab,ca", "a"),
		   "a list is searched for whole names");
	sysfs_selected("off [kernel] mtcopy", word, sizeof(word));
	check_true(!strcmp(word, "kernel"), "the word in brackets is the selected one");
}

/* Long enough for the readers to check every word of every page of a small target. */
#define CALLS_PER_SECOND 1000
#define READING_NS 300000000

static void read_target(bool flip)
{
	struct target target;

	target_open(&target, TARGET_ANON, FOLIO_ALIGN, 0, NULL, true);
	mprotect(target.base, target.bytes, PROT_READ | PROT_WRITE);
	readers_start(&target, 2, 4);
	readers_shift(2);
	target.base[target.bytes / 2 + PAGE_WORDS] ^= flip;
	sleep_ns(READING_NS);
	readers_stop();
	target_close(&target);
}

static void read_good(void)
{
	read_target(false);
}

static void read_flipped(void)
{
	read_target(true);
}

static void read_by_processes(bool flip)
{
	struct target target;

	target_open(&target, TARGET_ANON, FOLIO_ALIGN, 0, NULL, false);
	mprotect(target.base, target.bytes, PROT_READ | PROT_WRITE);
	target.base[target.bytes / 2 + 64] ^= flip;
	processes_start(&target, 2, CALLS_PER_SECOND);
	processes_allow(UINT64_MAX);
	sleep_ns(READING_NS);
	processes_stop();
	target_close(&target);
}

static void processes_read_good(void)
{
	read_by_processes(false);
}

static void processes_read_flipped(void)
{
	read_by_processes(true);
}

/* Seven calls allocate, protect and free memory twice, and allocate it once more. */
static void test_processes(void)
{
	struct target target;
	uint64_t start;

	check_true(status_of(processes_read_good) == EXIT_PASSED, "processes find the content and make their calls");
	check_true(status_of(processes_read_flipped) == EXIT_FAILED, "a process that reads a wrong bit is seen");
	target_open(&target, TARGET_ANON, FOLIO_ALIGN, 0, NULL, false);
	start = clock_ns();
	processes_start(&target, 3, CALLS_PER_SECOND);
	check_true(processes_calls() == 0, "no process makes a call before it may");
	processes_allow(7);
	check_true(processes_wait(clock_ns() + UINT64_C(10000000000)), "processes make the calls that they may make");
	sleep_ns(READING_NS / 10);
	check_true(processes_calls() == 21, "and not one more");
	processes_allow(UINT64_MAX);
	check_true(!processes_wait(clock_ns() + READING_NS), "a wait ends at its deadline");
	/* A process that got no CPU for a while catches up. */
	check_true(processes_calls() < 2 * 3 * (clock_ns() - start) / (1000000000 / CALLS_PER_SECOND),
		   "calls are paced");
	processes_stop();
	target_close(&target);
}

static int run_shell(const char *script)
{
	return command_run((char *[]){ "sh", "-c", (char *)script, NULL });
}

static void run_missing(void)
{
	exit(command_run((char *[]){ "/nonexistent", NULL }));
}

static void run_directory(void)
{
	exit(command_run((char *[]){ "/", NULL }));
}

static void test_command(void)
{
	/* A shell without job control starts a background job with this signal ignored. */
	signal(SIGINT, SIG_DFL);
	check_true(!run_shell("exit 0") && run_shell("exit 3") == 3, "a command's exit status is passed on");
	check_true(run_shell("kill -9 $$") == 128 + SIGKILL, "so is the signal that killed it");
	check_true(run_shell("kill -2 $$") == 128 + SIGINT, "the command does not ignore the terminal's signals");
	check_true(status_of(run_missing) == 127, "a command that is not there is 127");
	check_true(status_of(run_directory) == 126, "one that is no program is 126");
}

static uint64_t looked_up(unsigned int threads, uint64_t each, uint64_t seed)
{
	struct table table;
	uint64_t hash;

	table_open(&table, FOLIO_ALIGN);
	hash = lookups_run(&table, threads, each, seed);
	table_close(&table);
	return hash;
}

static void test_reading(void)
{
	check_true(status_of(read_good) == EXIT_PASSED, "readers find the content, with holes between the pages");
	check_true(status_of(read_flipped) == EXIT_FAILED, "readers see a bit that flips while they read");
	check_true(looked_up(1, 6000, 1) == looked_up(3, 2000, 1), "the number of threads does not change the lookups");
	check_true(looked_up(1, 6000, 1) != looked_up(1, 6000, 2), "the seed does");
}

static struct fragments punch(void)
{
	struct fragments fragments = { folio_reserve(FOLIO_ALIGN), FOLIO_ALIGN, FOLIO_ALIGN };

	mprotect(fragments.base, FOLIO_ALIGN, PROT_READ | PROT_WRITE);
	madvise(fragments.base, FOLIO_ALIGN, MADV_NOHUGEPAGE);
	memset(fragments.base, 1, FOLIO_ALIGN);
	fragments_punch(&fragments);
	return fragments;
}

static void keep_fragments(void)
{
	struct fragments fragments = punch();

	fragments_free(&fragments);
}

static void lose_fragment(void)
{
	struct fragments fragments = punch();

	memset(fragments.base + 30 * PAGE_BYTES, 0, PAGE_BYTES);
	fragments_free(&fragments);
}

static void test_fragments(void)
{
	struct fragments fragments = punch();
	unsigned char present[FOLIO_ALIGN / PAGE_BYTES];
	size_t kept = 0, kept_of_32nd = 0;

	mincore(fragments.base, FOLIO_ALIGN, present);
	for (size_t page = 0; page < ARRAY_SIZE(present); page++) {
		kept += present[page] & 1;
		kept_of_32nd += page % 32 == 0 && present[page] & 1;
	}
	check_true(kept == ARRAY_SIZE(present) / 2, "every second page is a hole");
	check_true(kept_of_32nd == ARRAY_SIZE(present) / 64, "also of every 32nd page");
	fragments_free(&fragments);
	check_true(status_of(keep_fragments) == EXIT_PASSED, "pages that hold their word pass");
	check_true(status_of(lose_fragment) == EXIT_FAILED, "a page that lost its word fails");
}

static void test_histogram(void)
{
	static struct histogram some, more;

	check_true(!histogram_percentile(&some, 500), "nothing has no percentile");
	for (uint64_t ns = 1; ns <= 990; ns++)
		histogram_add(&some, ns);
	for (int i = 0; i < 10; i++)
		histogram_add(&more, UINT64_C(1) << 40);
	histogram_merge(&some, &more);
	check_true(some.total == 1000 && some.longest == UINT64_C(1) << 40, "merged durations are all there");
	check_true(histogram_percentile(&some, 500) >= 500 && histogram_percentile(&some, 500) < 516,
		   "a median is at most 3 % too long");
	check_true(histogram_percentile(&some, 990) >= 990 && histogram_percentile(&some, 990) < 1024,
		   "one in a hundred does not count at 99 %");
	check_true(histogram_percentile(&some, 999) == UINT64_C(1) << 40, "but does at 99.9 %");
	histogram_add(&more, UINT64_MAX);
	check_true(more.longest == UINT64_MAX, "the longest duration has a bucket");
}

/* The share of touches, in 1,000, that are in the window that the hot set has taken. */
static unsigned int touches_in(struct touched *touched, unsigned int shift, size_t window)
{
	unsigned int inside = 0;

	for (int i = 0; i < 10000; i++)
		inside += touch_choose(touched, shift) / touched->hot_pages == window;
	return inside / 10;
}

static void test_touch(void)
{
	struct touched touched;

	touch_open(&touched, 4 * BYTES, BYTES, 1);
	check_true(touches_in(&touched, 2, 2) > 980 && touches_in(&touched, 2, 2) < 1000,
		   "most touches are in the hot set, and some are anywhere");
	check_true(touches_in(&touched, 7, 3) > 980, "the hot set moves on, and after the last window to the first");
	check_true(touch_page(&touched, 5) && touch_page(&touched, 5), "a page holds the word of the last touch");
	memset(touched.base + 5 * PAGE_BYTES, 0, PAGE_BYTES);
	check_true(!touch_page(&touched, 5), "a page that has lost it is seen");
	free(touched.written);
	munmap(touched.base, 4 * BYTES);
}

static const struct tenants_memory each = { 4 * BYTES, BYTES, -1 };

static void lose_tenant(void)
{
	/* A hot set of no pages: a division by 0 kills the tenant. */
	const struct tenants_memory broken = { 4 * BYTES, 0, -1 };

	tenants_start(2, &broken, false);
	tenants_resume();
	for (int i = 0; i < 1000; i++) {
		tenants_check();
		sleep_ns(READING_NS / 100);
	}
}

static void test_tenants(void)
{
	uint64_t touches, deadline = clock_ns() + UINT64_C(10000000000);

	check_true(status_of(lose_tenant) == EXIT_FAILED, "a tenant that ends is seen");
	tenants_start(2, &each, false);
	tenants_resume();
	while (clock_ns() < deadline && !(tenant_histogram(0)->total && tenant_histogram(1)->total))
		sleep_ns(READING_NS / 10);
	tenants_pause();
	touches = tenant_histogram(0)->total;
	check_true(touches && tenant_histogram(1)->total, "each tenant touches its memory");
	sleep_ns(READING_NS / 10);
	check_true(tenant_histogram(0)->total == touches, "and rests when it is told to");
}

static void test_counters(void)
{
	struct counters before = { 0 }, after = { 0 }, none = { 0 };
	char directory[] = "/tmp/counters.XXXXXX", file[64];

	if (!mkdtemp(directory))
		die(EXIT_FAILED, "%s: %m", directory);
	snprintf(file, sizeof(file), "%s/le_64us", directory);
	close(creat(file, 0600));
	sysfs_write(file, "40\n");
	counters_read_dir(&before, "locked_", directory);
	sysfs_write(file, "42\n");
	counters_read_dir(&after, "locked_", directory);
	counters_read_dir(&none, "locked_", file);
	unlink(file);
	rmdir(directory);
	check_true(after.count == 1 && counters_delta(&before, &after, "locked_le_64us") == 2,
		   "a file of a directory is a counter");
	check_true(!none.count, "what is no directory has no counters");
}

static void test_setting(void)
{
	char file[] = "/tmp/setting.XXXXXX", value[16];
	const int nodes[] = { 0, 1 };
	int fd = mkstemp(file);

	if (fd < 0)
		die(EXIT_FAILED, "%s: %m", file);
	sysfs_write(file, "old\n");
	check_true(sysfs_set_until_exit(file, "new\n") && sysfs_read_line(file, value, sizeof(value)) &&
		   !strcmp(value, "new"), "a setting is written");
	sysfs_restore(file);
	check_true(sysfs_read_line(file, value, sizeof(value)) && !strcmp(value, "old"), "and comes back when asked for");
	sysfs_disown();
	unlink(file);
	close(fd);
	check_true(!hugetlb_map(3 * BYTES, BYTES, nodes), "hugetlb folios of a size that no kernel has are refused");
}

int main(void)
{
	memory = aligned_alloc(PAGE_BYTES, BYTES);
	if (!memory)
		die(EXIT_FAILED, "no memory for %zu bytes", BYTES);
	/* A child of fork() would write buffered output of its parent again. */
	setvbuf(stdout, NULL, _IONBF, 0);
	test_stamp();
	test_histogram();
	test_counters();
	test_fragments();
	test_pattern();
	test_span();
	test_areas();
	test_cmdline();
	test_movebench_options();
	test_setting();
	test_stale_tlb_result();
	test_reading();
	test_processes();
	test_command();
	test_touch();
	test_tenants();
	free(memory);
	return failures ? EXIT_FAILED : EXIT_PASSED;
}
