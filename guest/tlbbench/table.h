/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Cross sections of nuclides over energy, and the unionised grid of all their energies: each row of it has an index
 * into the grid of every nuclide. The table is written once, and then write-protected.
 */
#ifndef TLBBENCH_TABLE_H
#define TLBBENCH_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "util.h"

/* Numbers that look random and are the same on every machine: splitmix64. */
static inline uint64_t mix(uint64_t value)
{
	value += UINT64_C(0x9e3779b97f4a7c15);
	value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
	return value ^ value >> 31;
}

/* In [0, 1). */
static inline double mix_share(uint64_t value)
{
	return (mix(value) >> 11) * 0x1p-53;
}

#define NUCLIDES 16
#define REACTIONS 5

struct grid_row {
	double energy;
	uint32_t index[NUCLIDES];	/* of each nuclide, its last point that is not above */
};

struct point {
	double energy;
	double section[REACTIONS];
};

struct table {
	void *memory;
	size_t bytes;
	struct grid_row *grid;
	size_t rows;
	struct point *points[NUCLIDES];
	size_t points_each;
};

/* Make as many points as fit into `bytes`, in single pages. */
void table_open(struct table *table, size_t bytes);
void table_close(struct table *table);

/* Index of the last row whose energy is not above; 0 if all are above. */
size_t table_search(const struct table *table, double energy);

#endif
