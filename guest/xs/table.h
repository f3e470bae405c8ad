/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Cross sections of nuclides over energy, and the unionised grid of all their energies, which says
 * for each where to look in every nuclide's own grid. Written once, and write-protected then.
 */
#ifndef XS_TABLE_H
#define XS_TABLE_H

#include <stddef.h>
#include <stdint.h>

#define NUCLIDES 16
#define REACTIONS 5

struct grid_row {
	double energy;
	uint32_t index[NUCLIDES];	/* the last point of each nuclide that is not above */
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

/* As many points as fit into `bytes`, in single pages. */
void table_open(struct table *table, size_t bytes);
void table_close(struct table *table);

/* The last row whose energy is not above; 0 if there is none. */
size_t table_search(const struct table *table, double energy);

#endif
