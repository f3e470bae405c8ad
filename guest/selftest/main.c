// SPDX-License-Identifier: GPL-2.0
/* Do the programs see what they are there to see? Runs anywhere, in no time, as nobody in particular. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../bench/rolling.h"
#include "../check/span.h"
#include "../tlb/readers.h"
#include "../xs/lookup.h"
#include "clock.h"
#include "parse.h"
#include "quit.h"
#include "stamp.h"
#include "sysfile.h"
#include "selftest.h"

#define PAGES 4
#define BYTES (PAGES * PAGE_BYTES)

static char *memory;
static unsigned int failures;

void expect(bool held, const char *what)
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
	expect(stamp_check(memory, 7, 3, &wrong), "a stamp is what it is");
	expect(!stamp_check(memory, 7, 2, &wrong), "an old generation is wrong");
	expect(!stamp_check(memory, 6, 3, &wrong), "another page is wrong");
	memory[PAGE_BYTES - 1] ^= 1;
	expect(!stamp_check(memory, 7, 3, &wrong) && wrong.word == PAGE_WORDS - 1,
	       "the last byte counts, and is named");
}

/* Enough generations for words to be stored more than once. */
static struct rolling rolled(void)
{
	struct rolling rolling = { .base = memory, .bytes = BYTES };

	rolling_fill(&rolling);
	for (unsigned int i = 0; i < PAGE_WORDS + 5; i++)
		rolling_step(&rolling);
	return rolling;
}

static void verify_good(void)
{
	struct rolling rolling = rolled();

	rolling_verify(&rolling);
}

static void verify_flipped(void)
{
	struct rolling rolling = rolled();

	memory[BYTES - 1] ^= 1;
	rolling_verify(&rolling);
}

/* A copy that was left out: the page is what it was one generation ago. */
static void step_after_lost_copy(void)
{
	struct rolling rolling = rolled();
	char before[PAGE_BYTES];

	memcpy(before, memory + PAGE_BYTES, PAGE_BYTES);
	rolling_step(&rolling);
	memcpy(memory + PAGE_BYTES, before, PAGE_BYTES);
	rolling_step(&rolling);
}

static void refill(void)
{
	struct rolling rolling = rolled();

	rolling_fill(&rolling);
	rolling_step(&rolling);
	rolling_verify(&rolling);
}

static void test_rolling(void)
{
	expect(status_of(verify_good) == EXIT_PASSED, "rolled content is right");
	expect(status_of(refill) == EXIT_PASSED, "and when all of it is renewed");
	expect(status_of(verify_flipped) == EXIT_FAILED, "a flipped bit is seen");
	expect(status_of(step_after_lost_copy) == EXIT_FAILED, "a lost copy is seen at the next step");
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

	expect(span_claim(&span) && !span_claim(&neighbour), "a claimed page cannot be claimed");
	span_stamp(&span);
	expect(span_matches(&span, span_address(&span), 0, &wrong), "a span is of its generation");
	stamp_write(memory + PAGE_BYTES, 1, 0);
	expect(!span_matches(&span, span_address(&span), 0, &wrong) && wrong.page == 1,
	       "a lost write is seen, and its page named");
	span_release(&span);
	expect(span_claim(&neighbour), "a released page can be claimed");
	free(arena.ledger);
}

static void parse_minus(void)
{
	parse_number("--n", "-1", 0, 10);
}

static void parse_unit(void)
{
	parse_bytes("--bytes", "3q");
}

static void test_parse(void)
{
	char word[16];

	expect(parse_bytes("--bytes", "3m") == (size_t)3 << 20, "3m is three mebibytes");
	expect(status_of(parse_minus) == EXIT_USAGE, "-1 is no number here");
	expect(status_of(parse_unit) == EXIT_USAGE, "q is no unit");
	sysfile_selected("off [kernel] mtcopy", word, sizeof(word));
	expect(!strcmp(word, "kernel"), "the word in brackets is selected");
}

/* Long enough for readers to come to every word of every page of a small area. */
#define READING_NS 300000000

static void read_area(bool flip)
{
	struct target area;

	target_open(&area, TARGET_ANON, TARGET_ALIGN, 0, NULL, true);
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

	table_open(&table, TARGET_ALIGN);
	hash = lookups_run(&table, threads, each, seed);
	table_close(&table);
	return hash;
}

static void test_reading(void)
{
	expect(status_of(read_good) == EXIT_PASSED, "readers find what was written, with holes between");
	expect(status_of(read_flipped) == EXIT_FAILED, "a bit flipped while they read is seen");
	expect(looked_up(1, 6000, 1) == looked_up(3, 2000, 1), "lookups are the same by however many threads");
	expect(looked_up(1, 6000, 1) != looked_up(1, 6000, 2), "and others by another seed");
}

int main(void)
{
	memory = aligned_alloc(PAGE_BYTES, BYTES);
	if (!memory)
		quit(EXIT_FAILED, "no memory for %zu bytes", BYTES);
	/* Children inherit what is not written yet, and would write it again. */
	setvbuf(stdout, NULL, _IONBF, 0);
	test_stamp();
	test_rolling();
	test_span();
	test_parse();
	test_verdict();
	test_reading();
	free(memory);
	return failures ? EXIT_FAILED : EXIT_PASSED;
}
