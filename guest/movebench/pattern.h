/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Content that changes with every generation at the cost of one store a page: generation g is stored in word
 * g mod PAGE_WORDS. If a copy is left out at any time, that word shows it, and the content of each word can be computed
 * without a record. A wrong word ends the program with EXIT_FAILED.
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
void pattern_fill(struct pattern *pattern);

/* Check the word of the newest generation in each page. */
void pattern_check(const struct pattern *pattern);

/* The same, and store the next generation. */
void pattern_step(struct pattern *pattern);

/* Check every word of every page. */
void pattern_verify(const struct pattern *pattern);

#endif
