// SPDX-License-Identifier: GPL-2.0
/* Do the programs see what they are there to see? Runs anywhere, in no time, as nobody in particular. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../integrity/span.h"
#include "../movebench/pattern.h"
#include "../tlbbench/lookup.h"
#include "../tlbbench/readers.h"
#include "cmdline.h"
#include "folio.h"
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

/* The exit status of a function that may end the program. */
static int status_of(void (*function)(void))
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
	check_true(stamp_check(memory, 7, 3, &wrong), "a stamp is what it is");
	check_true(!stamp_check(memory, 7, 2, &wrong), "an old generation is wrong");
	check_true(!stamp_check(memory, 6, 3, &wrong), "another page is wrong");
	memory[PAGE_BYTES - 1] ^= 1;
	check_true(!stamp_check(memory, 7, 3, &wrong) && wrong.word == PAGE_WORDS - 1,
		   "the last byte counts, and is named");
}

/* Enough generations for words to be stored more than once. */
static struct pattern rolled(void)
{
	struct pattern rolling = { .base = memory, .bytes = BYTES };

	pattern_fill(&rolling);
	for (unsigned int i = 0; i < PAGE_WORDS + 5; i++)
		pattern_step(&rolling);
	return rolling;
}

static void verify_good(void)
{
	struct pattern rolling = rolled();

	pattern_verify(&rolling);
}

static void verify_flipped(void)
{
	struct pattern rolling = rolled();

	memory[BYTES - 1] ^= 1;
	pattern_verify(&rolling);
}

/* A copy that was left out: the page is what it was one generation ago. */
static void step_after_lost_copy(void)
{
	struct pattern rolling = rolled();
	char before[PAGE_BYTES];

	memcpy(before, memory + PAGE_BYTES, PAGE_BYTES);
	pattern_step(&rolling);
	memcpy(memory + PAGE_BYTES, before, PAGE_BYTES);
	pattern_step(&rolling);
}

static void refill(void)
{
	struct pattern rolling = rolled();

	pattern_fill(&rolling);
	pattern_step(&rolling);
	pattern_verify(&rolling);
}

static void test_rolling(void)
{
	check_true(status_of(verify_good) == EXIT_PASSED, "rolled content is right");
	check_true(status_of(refill) == EXIT_PASSED, "and when all of it is renewed");
	check_true(status_of(verify_flipped) == EXIT_FAILED, "a flipped bit is seen");
	check_true(status_of(step_after_lost_copy) == EXIT_FAILED, "a lost copy is seen at the next step");
}

static struct area area = { .name = "test", .traits = AREA_ANON, .pages = PAGES, .fd = -1 };

static struct span open_span(struct arena *arena)
{
	arena->ledger = calloc(PAGES, sizeof(*arena->ledger));
	area.base = memory;
	for (uint32_t i = 0; i < PAGES; i++)
		stamp_write(area_address(&area, i), i, 0);
	return (struct span){ arena, &area, 1, 2 };
}

static void test_span(void)
{
	struct arena arena = { 0 };
	struct span span = open_span(&arena), neighbour = { &arena, &area, 2, 2 };
	struct mismatch wrong;

	check_true(span_claim(&span) && !span_claim(&neighbour), "a claimed page cannot be claimed");
	span_stamp(&span);
	check_true(span_matches(&span, span_address(&span), 0, &wrong), "a span is of its generation");
	stamp_write(memory + PAGE_BYTES, 1, 0);
	check_true(!span_matches(&span, span_address(&span), 0, &wrong) && wrong.page == 1,
		   "a lost write is seen, and its page named");
	span_release(&span);
	check_true(span_claim(&neighbour), "a released page can be claimed");
	free(arena.ledger);
}

static struct {
	unsigned int number;
	size_t bytes;
	unsigned int choice;
	bool flag;
	const char *list;
} parsed;
static const char *given[2];	/* an option and its value */

static bool is_a(const char *name)
{
	return !strcmp(name, "a");
}

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
	char *argv[] = { "tests", (char *)given[0], (char *)given[1], NULL };

	optind = 1;
	cmdline_parse("tests", table, given[1] ? 3 : 2, argv);
}

static int parse(const char *option, const char *value)
{
	given[0] = option;
	given[1] = value;
	return status_of(parse_given);
}

static void test_cmdline(void)
{
	char word[16];

	given[0] = "--bytes";
	given[1] = "3m";
	parse_given();
	check_true(parsed.bytes == (size_t)3 << 20, "3m is three mebibytes");
	given[0] = "--choice";
	given[1] = "second";
	parse_given();
	check_true(parsed.choice == 1, "a choice is its index");
	check_true(parse("--number", "10") == EXIT_PASSED, "the largest number is taken");
	check_true(parse("--number", "11") == EXIT_USAGE, "a larger one is refused");
	check_true(parse("--number", "-1") == EXIT_USAGE, "so is a sign");
	check_true(parse("--number", "1x") == EXIT_USAGE, "so is what follows a number");
	check_true(parse("--bytes", "3q") == EXIT_USAGE, "q is no unit");
	check_true(parse("--bytes", "0k") == EXIT_USAGE, "a size is not 0");
	check_true(parse("--choice", "third") == EXIT_USAGE, "an unknown choice is refused");
	check_true(parse("--list", "a,a") == EXIT_PASSED, "a list of known names is taken");
	check_true(parse("--list", "a,b") == EXIT_USAGE, "an unknown name in a list is refused");
	check_true(parse("--list", "") == EXIT_USAGE, "so is an empty one");
	check_true(parse("--flag", NULL) == EXIT_PASSED, "a flag needs no value");
	check_true(parse("--flag", "a") == EXIT_USAGE, "and takes none");
	check_true(parse("--number", NULL) == EXIT_USAGE, "a value that is missing is an error");
	check_true(parse("--other", "1") == EXIT_USAGE, "so is an unknown option");
	check_true(cmdline_in_list("ab,a", "a") && !cmdline_in_list("ab,ca", "a"), "a name in a list is a whole word");
	sysfs_selected("off [kernel] mtcopy", word, sizeof(word));
	check_true(!strcmp(word, "kernel"), "the word in brackets is selected");
}

/* Long enough for readers to come to every word of every page of a small area. */
#define READING_NS 300000000

static void read_area(bool flip)
{
	struct target area;

	target_open(&area, TARGET_ANON, FOLIO_ALIGN, 0, NULL, true);
	mprotect(area.base, area.bytes, PROT_READ | PROT_WRITE);
	readers_start(&area, 2, 4);
	readers_shift(2);
	area.base[area.bytes / 2 + PAGE_WORDS] ^= flip;
	sleep_ns(READING_NS);
	readers_stop();
	target_close(&area);
}

static void read_good(void)
{
	read_area(false);
}

static void read_flipped(void)
{
	read_area(true);
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
	check_true(status_of(read_good) == EXIT_PASSED, "readers find what was written, with holes between");
	check_true(status_of(read_flipped) == EXIT_FAILED, "a bit flipped while they read is seen");
	check_true(looked_up(1, 6000, 1) == looked_up(3, 2000, 1), "lookups are the same by however many threads");
	check_true(looked_up(1, 6000, 1) != looked_up(1, 6000, 2), "and others by another seed");
}

int main(void)
{
	memory = aligned_alloc(PAGE_BYTES, BYTES);
	if (!memory)
		die(EXIT_FAILED, "no memory for %zu bytes", BYTES);
	/* Children inherit what is not written yet, and would write it again. */
	setvbuf(stdout, NULL, _IONBF, 0);
	test_stamp();
	test_rolling();
	test_span();
	test_cmdline();
	test_verdict();
	test_reading();
	free(memory);
	return failures ? EXIT_FAILED : EXIT_PASSED;
}
