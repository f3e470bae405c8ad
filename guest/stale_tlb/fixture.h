/* SPDX-License-Identifier: GPL-2.0 */
/* What the events are made of. */
#ifndef STALE_TLB_FIXTURE_H
#define STALE_TLB_FIXTURE_H

#include <sys/types.h>

#include "stale_tlb.h"

/* The word that page `index` begins with when the bed holds `value`. */
static inline uint64_t word(uint64_t value, size_t index)
{
	return value << 16 | index;
}

void bed_open(struct bed *bed, const struct event *event, const struct options *options, struct report *report);
void bed_close(struct bed *bed);

/* One round, and what came of it into the report. */
void bed_round(struct bed *bed);

/* End the case: something it needs is missing. */
_Noreturn void bed_skip(struct bed *bed, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The case is not what it should be. */
void bed_broken(struct bed *bed, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Someone saw what must not be seen any more. */
void bed_stale(struct bed *bed, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Private memory of single pages that is neither merged nor collapsed by itself; at no block's start. */
char *bed_map_anon(struct bed *bed, size_t pages);
/*
 * Of the pages mapped, the first and the last few only move along with those between, first and last: they are mapped
 * read-only and never written, so they make a move longer and need no flush.
 */
void bed_pad(struct bed *bed, size_t before, size_t after);
void bed_write(char *base, size_t pages, uint64_t value);

/* Mapped read-only from now on, though it may be written: a child had it too, and is gone. */
void bed_fork_once(struct bed *bed);

/* Every page to the other node. */
void bed_move(struct bed *bed);
/* The node that a page is not on, of the two; the bed's first page for bed_move(). */
int bed_other_node(const struct bed *bed, void *page);

/* No page is mapped there now, whatever was or will be. */
bool bed_absent(const struct bed *bed, size_t index);
/* A move has unmapped all pages: it does so in order. */
bool bed_under_way(const struct bed *bed);

/* The reader reads each page: it must see the old content, as it is. */
void bed_touch(struct bed *bed);
/* The same of the event's outcome: what is not among `sees` (enum sees) is stale. */
void bed_judge(struct bed *bed, unsigned int sees);

uint64_t bed_random(struct bed *bed, uint64_t below);
/* Reap a child of one's own; its exit status, or -1. */
int bed_reap(pid_t child);

/* Where debugfs and tracefs are, mounted if need be; false: they are not to be had. */
bool bed_debugfs(void);

#endif
