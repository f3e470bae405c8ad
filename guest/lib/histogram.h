/* SPDX-License-Identifier: GPL-2.0 */
/* Durations, counted in buckets that are at most 3 % wide. */
#ifndef GUEST_HISTOGRAM_H
#define GUEST_HISTOGRAM_H

#include <stdint.h>

/* Each power of two has so many buckets. */
#define HISTOGRAM_STEPS 32

struct histogram {
	uint64_t counts[64 * HISTOGRAM_STEPS];
	uint64_t total;
	uint64_t longest;	/* ns */
};

void histogram_add(struct histogram *histogram, uint64_t ns);

/* Add all durations of another one. */
void histogram_merge(struct histogram *histogram, const struct histogram *other);

/* The duration in ns that a share of `permille` in 1,000 does not exceed, rounded up to a bucket; 0 if there is none. */
uint64_t histogram_percentile(const struct histogram *histogram, unsigned int permille);

#endif
