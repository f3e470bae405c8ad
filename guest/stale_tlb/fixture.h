/* SPDX-License-Identifier: GPL-2.0 */
/* What the events are made of. */
#ifndef STALE_TLB_FIXTURE_H
#define STALE_TLB_FIXTURE_H

#include <sys/types.h>

#include "stale_tlb.h"

/* The word that page `index` begins with when the bed holds `value`. */
static inline uint64_t page_word(uint64_t value, size_t index)
{
	return value << 16 | index;
}

void fixture_setup(struct fixture *fx, const struct test *test, const struct options *options, struct report *report);
void fixture_teardown(struct fixture *fx);

/* One round, and what came of it into the report. */
void fixture_run_round(struct fixture *fx);

/* End the case: something it needs is missing. */
_Noreturn void test_skip(struct fixture *fx, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The case is not what it should be. */
void test_error(struct fixture *fx, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Someone saw what must not be seen any more. */
void test_stale(struct fixture *fx, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Private memory of single pages that is neither merged nor collapsed by itself; at no block's start. */
char *fixture_map_anon(struct fixture *fx, size_t pages);
/*
 * Of the pages mapped, the first and the last few only move along with those between, first and last: they are mapped
 * read-only and never written, so they make a move longer and need no flush.
 */
void fixture_add_padding(struct fixture *fx, size_t before, size_t after);
void write_pages(char *base, size_t pages, uint64_t value);

/* Mapped read-only from now on, though it may be written: a child had it too, and is gone. */
void fixture_fork_and_reap(struct fixture *fx);

/* Every page to the other node. */
void fixture_move(struct fixture *fx);
/* The node that a page is not on, of the two; the bed's first page for fixture_move(). */
int fixture_other_node(const struct fixture *fx, void *page);

/* No page is mapped there now, whatever was or will be. */
bool fixture_page_absent(const struct fixture *fx, size_t index);
/* A move has unmapped all pages: it does so in order. */
bool fixture_all_unmapped(const struct fixture *fx);

/* The reader reads each page: it must see the old content, as it is. */
void fixture_fill_tlb(struct fixture *fx);
/* The same of the event's outcome: what is not among `sees` (enum expect) is stale. */
void fixture_check(struct fixture *fx, unsigned int expect);

uint64_t fixture_random(struct fixture *fx, uint64_t below);
/* Reap a child of one's own; its exit status, or -1. */
int reap_child(pid_t child);

/* Where debugfs and tracefs are, mounted if need be; false: they are not to be had. */
bool mount_debugfs(void);

#endif
