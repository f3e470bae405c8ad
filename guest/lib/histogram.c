// SPDX-License-Identifier: GPL-2.0
#include "histogram.h"

#include "util.h"

/* The first buckets are one ns wide; from HISTOGRAM_STEPS on, a power of two has HISTOGRAM_STEPS of equal width. */
static unsigned int bucket_of(uint64_t ns)
{
	unsigned int shift;

	if (ns < HISTOGRAM_STEPS)
		return ns;
	shift = 63 - __builtin_clzll(ns) - __builtin_ctz(HISTOGRAM_STEPS);
	return (shift + 1) * HISTOGRAM_STEPS + (ns >> shift) - HISTOGRAM_STEPS;
}

/* The longest duration of a bucket. */
static uint64_t longest_of(unsigned int bucket)
{
	unsigned int shift = bucket / HISTOGRAM_STEPS;

	if (!shift)
		return bucket;
	return (((uint64_t)bucket % HISTOGRAM_STEPS + HISTOGRAM_STEPS + 1) << (shift - 1)) - 1;
}

void histogram_add(struct histogram *histogram, uint64_t ns)
{
	histogram->counts[bucket_of(ns)]++;
	histogram->total++;
	if (ns > histogram->longest)
		histogram->longest = ns;
}

void histogram_merge(struct histogram *histogram, const struct histogram *other)
{
	for (size_t i = 0; i < ARRAY_SIZE(histogram->counts); i++)
		histogram->counts[i] += other->counts[i];
	histogram->total += other->total;
	if (other->longest > histogram->longest)
		histogram->longest = other->longest;
}

uint64_t histogram_percentile(const struct histogram *histogram, unsigned int permille)
{
	uint64_t wanted = (histogram->total * permille + 999) / 1000, seen = 0;

	for (size_t i = 0; i < ARRAY_SIZE(histogram->counts); i++) {
		seen += histogram->counts[i];
		if (seen && seen >= wanted)
			return longest_of(i) < histogram->longest ? longest_of(i) : histogram->longest;
	}
	return 0;
}
