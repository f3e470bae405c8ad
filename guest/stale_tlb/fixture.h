/* SPDX-License-Identifier: GPL-2.0 */
/* The pages of a test, and the steps that tests are made of. */
#ifndef STALE_TLB_FIXTURE_H
#define STALE_TLB_FIXTURE_H

#include <sys/types.h>

#include "stale_tlb.h"
#include "util.h"

/* The first word of page `index` when the pages hold `value`. */
static inline uint64_t page_word(uint64_t value, size_t index)
{
	return value << 16 | index;
}

static inline size_t fixture_bytes(const struct fixture *fx)
{
	return fx->pages * PAGE_BYTES;
}

void fixture_setup(struct fixture *fx, const struct test *test, const struct options *options, struct report *report);
void fixture_teardown(struct fixture *fx);

/* Run one round and count it in the report. */
void fixture_run_round(struct fixture *fx);

/* End the test because the machine lacks something that it needs. */
_Noreturn void test_skip(struct fixture *fx, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Report that the test itself went wrong. */
void test_error(struct fixture *fx, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Report stale data. */
void test_stale(struct fixture *fx, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * Map private memory for the fixture; MADV_NOHUGEPAGE keeps THP away from it. It does not begin at a page table's
 * start, because mremap() would move whole page tables as such, and flush them as such.
 */
char *fixture_map_anon(struct fixture *fx, size_t pages);
/* Replace the fixture's pages by private memory that nothing has touched, under madvise(advice). */
void fixture_remap_anon(struct fixture *fx, int advice);
/*
 * Turn the first and the last few pages of the fixture into padding, which migrates in the same call as the pages
 * between, before and after them. It is mapped read-only and never written, so it makes a move longer but needs no
 * flush.
 */
void fixture_add_padding(struct fixture *fx, size_t before, size_t after);
void write_pages(char *base, size_t pages, uint64_t value);
/* Fill other memory with a content that no page of a fixture has. */
void write_pattern(char *memory, size_t bytes);

/* Fork a child that exits: its copy-on-write leaves writable private pages mapped read-only, but exclusive again. */
void fixture_fork_and_reap(struct fixture *fx);

/* setup() of several tests: write the old content, then fork, or write-protect it by mprotect(2). */
void setup_forked(struct fixture *fx);
void setup_protected(struct fixture *fx);
/* trigger() of several tests: write the new content. */
bool trigger_store(struct fixture *fx);

/* fixture_setup() and setup() of tests of one 64-KiB folio. */
#define FOLIO_BYTES ((size_t)64 * 1024)
#define FOLIO_PAGES (FOLIO_BYTES / PAGE_BYTES)
void fixture_setup_folio(struct fixture *fx);
void setup_folio(struct fixture *fx);

/* Move every page to the other node. */
void fixture_move(struct fixture *fx);
/* Of the two nodes, the one that a page is not on: fixture_move() goes by the fixture's first page. */
int fixture_other_node(const struct fixture *fx, void *page);
/* Of the two nodes, the one that a page is on. */
int fixture_node(const struct fixture *fx, void *page);

/* No page is mapped at this moment; there may be a migration entry or a swap entry. */
bool fixture_page_absent(const struct fixture *fx, size_t index);
/* A move has unmapped all pages. It unmaps them in order, so the last one tells. */
bool fixture_all_unmapped(const struct fixture *fx);

/* Let the reader read each page, which fills its TLB; anything but the old content is an error. */
void fixture_fill_tlb(struct fixture *fx);
/* Let the reader read each page; anything not in `expect` (enum expect) is stale data, but a fault is an error. */
void fixture_check(struct fixture *fx, unsigned int expect);

uint64_t fixture_random(struct fixture *fx, uint64_t below);
/* Reap a child of this process. Returns its exit status, or -1. */
int reap_child(pid_t child);

/* Mount debugfs and tracefs if they are not. False if debugfs is not available. */
bool mount_debugfs(void);

#endif
