/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Content that changes with every generation at the price of one word a page: generation g is
 * stored in word g mod PAGE_WORDS, so a copy left out at any time shows in that word, and what
 * each word must hold is known without a record. Anything wrong ends the program with EXIT_FAILED.
 */
#ifndef MOVEBENCH_PATTERN_H
#define MOVEBENCH_PATTERN_H

#include <stddef.h>
#include <stdint.h>

struct pattern {
	char *base;
	size_t bytes;
	uint32_t whole;		/* generation in which all words were stored */
	uint32_t last;		/* newest generation */
};

/* Store the next generation in every word. */
void pattern_fill(struct pattern *rolling);

/* Check the word of the newest generation in each page. */
void pattern_check(const struct pattern *rolling);

/* The same, and store the next generation. */
void pattern_step(struct pattern *rolling);

/* Check every word of every page. */
void pattern_verify(const struct pattern *rolling);

#endif
