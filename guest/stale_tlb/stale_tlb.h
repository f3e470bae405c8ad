/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tests of deferred TLB flushes. A reader on another CPU holds TLB entries of pages that then migrate, while migrc
 * defers their TLB flush. The trigger of the test then changes the content or the mapping, and the reader reads again:
 * it must never read the old content.
 */
#ifndef STALE_TLB_H
#define STALE_TLB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "migration.h"
#include "reader.h"

#define DEFAULT_PAGES 8		/* in a round, unless the test sets its own number */
#define EXIT_OPTION "exit"	/* exit at once: for a child of a test to exec */

struct fixture;

/* The results that the reader may get after the trigger. */
enum expect {
	EXPECT_OLD = 1,
	EXPECT_NEW = 2,
	EXPECT_ZERO = 4,
	EXPECT_FAULT = 8,
};

/*
 * A test. In each round setup() fills fixture->base with fixture->old and leaves it mapped read-only, the reader reads
 * it, the pages migrate to the other node, trigger() changes them and writes fixture->new, and the reader reads again.
 * A test that needs another sequence sets run_round() instead.
 */
struct test {
	const char *name;
	const char *description;
	size_t pages;
	unsigned int expect;		/* enum expect */
	unsigned int min_deferred;	/* percentage of rounds in which migrc must defer a flush */
	unsigned int min_triggered;	/* percentage of rounds in which the intended change must happen */
	bool never_deferred;
	bool in_place;			/* the first page must keep its frame across the trigger */
	bool reader_sleeps;		/* while the trigger runs */
	bool slow;			/* a round takes seconds: a tenth of the rounds */
	bool hidden;			/* not in "all" */
	bool machine;			/* takes CPUs, memory or settings from the whole machine */
	void (*fixture_setup)(struct fixture *fx);
	void (*setup)(struct fixture *fx);
	bool (*trigger)(struct fixture *fx);
	void (*run_round)(struct fixture *fx);
	void (*fixture_teardown)(struct fixture *fx);
};

struct options {
	const char *tests;
	const char *except;		/* names, or NULL */
	unsigned int rounds;
	unsigned int limit_s;		/* for one test */
	int nodes[2];
	const char *dir;		/* for files */
	uint64_t seed;
	bool until_stale;		/* a test passes when it reads stale data */
	bool off;			/* no deferral, as a control */
	bool machine;			/* also tests that take from the whole machine */
	bool ktap;
	bool list;
};

/* The counts of one test, in memory that its process shares with the parent, which derives the result from them. */
struct report {
	uint64_t rounds, deferred, triggered, stale, errors, moved;
	char reason[256];		/* of the first error or stale read, or of the skip */
};

/* The roles of a test's CPUs; on a small machine some roles share a CPU, but never with the reader. */
enum cpu_role { MAIN_CPU, WORKER_CPU, CHILD_CPU, READER_CPU, CPU_ROLES };

struct fixture {
	const struct test *test;
	const struct options *options;
	struct report *report;
	struct reader *reader;
	struct moveset set;
	char *base;
	size_t pages;
	size_t step;			/* bytes of a folio, for move_pages(2) */
	size_t padding_before, padding_after;	/* pages, see fixture_add_padding() */
	size_t apart;			/* bytes between the padding before and the pages; they do not move */
	int cpus[CPU_ROLES];
	unsigned int cpu_count;
	uint64_t old, new;
	uint64_t random;
	bool was_deferred;		/* by the last fixture_move() */
	size_t moved;
};

extern const struct test anon_tests[], file_tests[], in_flight_tests[], reuse_tests[], lost_write_tests[],
	large_tests[], ksm_tests[], uffd_tests[], swap_tests[], child_tests[], hwpoison_tests[], hotplug_tests[],
	quarantine_tests[], uprobe_tests[];

void options_parse(struct options *options, int argc, char **argv);

#endif
