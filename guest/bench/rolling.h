/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Content that changes with every sample at the price of one word a page: sample g stores its
 * generation in word g mod PAGE_WORDS, so a copy left out in any sample shows in that word, and
 * what each word must hold after the last sample is known without a record.
 */
#ifndef BENCH_ROLLING_H
#define BENCH_ROLLING_H

#include <stddef.h>
#include <stdint.h>

/* Check the word of the last sample, store that of this one (generation, from 1). Wrong: EXIT_FAILED. */
void rolling_step(char *base, size_t bytes, uint32_t generation);

/* Check every word of every page after the last sample. Wrong: EXIT_FAILED. */
void rolling_verify(const char *base, size_t bytes, uint32_t generation);

#endif
