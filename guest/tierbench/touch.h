/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The memory of one tenant. Most touches are in its hot set, which is a window of it; few are anywhere. A touch reads a
 * word of a page, checks it, and writes it.
 */
#ifndef TIERBENCH_TOUCH_H
#define TIERBENCH_TOUCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One touch of so many is anywhere. */
#define COLD_EVERY 256

struct touched {
	char *base;
	size_t pages;
	size_t hot_pages;	/* of them, in the hot set */
	uint32_t *written;	/* by page */
	uint64_t random;
};

/* Allocate the memory as single pages and write each page. Ends the program with EXIT_FAILED if there is none. */
void touch_open(struct touched *touched, size_t bytes, size_t hot_bytes, uint64_t seed);

/*
 * The page to touch when the hot set has moved `shift` times: each time it takes the next window, and after the last
 * the first one.
 */
size_t touch_choose(struct touched *touched, unsigned int shift);

/* Free the hot set of this number, so that each page of it is allocated at its next touch. */
void touch_renew(struct touched *touched, unsigned int shift);

/* Touch it; false if the word is not the one that the touch before has written. */
bool touch_page(struct touched *touched, size_t page);

#endif
