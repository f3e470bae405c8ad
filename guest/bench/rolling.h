/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Content that changes with every generation at the price of one word a page: generation g is
 * stored in word g mod PAGE_WORDS, so a copy left out at any time shows in that word, and what
 * each word must hold is known without a record. Anything wrong ends the program with EXIT_FAILED.
 */
#ifndef BENCH_ROLLING_H
#define BENCH_ROLLING_H

#include <stddef.h>
#include <stdint.h>

struct rolling {
	char *base;
	size_t bytes;
	uint32_t whole;		/* generation in which all words were stored */
	uint32_t last;		/* newest generation */
};

/* Store the next generation in every word. */
void rolling_fill(struct rolling *rolling);

/* Check the word of the newest generation in each page. */
void rolling_check(const struct rolling *rolling);

/* The same, and store the next generation. */
void rolling_step(struct rolling *rolling);

/* Check every word of every page. */
void rolling_verify(const struct rolling *rolling);

#endif
