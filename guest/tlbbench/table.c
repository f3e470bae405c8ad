// SPDX-License-Identifier: GPL-2.0
#include "table.h"

#include <sys/mman.h>

/* What one point of each nuclide takes, with the rows of the grid that come with it. */
#define POINT_BYTES (NUCLIDES * (sizeof(struct grid_row) + sizeof(struct point)))

/* Points of the nuclides alternate, so a row's energy and where it points need no sorting. */
static double energy_of(const struct table *table, size_t row)
{
	return (row + 0.5) / table->rows;
}

static void fill_points(struct table *table, unsigned int nuclide)
{
	for (size_t i = 0; i < table->points_each; i++) {
		struct point *point = &table->points[nuclide][i];

		point->energy = energy_of(table, i * NUCLIDES + nuclide);
		for (unsigned int k = 0; k < REACTIONS; k++)
			point->section[k] = mix_share((i * NUCLIDES + nuclide) * REACTIONS + k);
	}
}

static void fill_grid(struct table *table)
{
	for (size_t row = 0; row < table->rows; row++) {
		size_t point = row / NUCLIDES;

		table->grid[row].energy = energy_of(table, row);
		for (unsigned int n = 0; n < NUCLIDES; n++)
			table->grid[row].index[n] = point - (n > row % NUCLIDES && point);
	}
}

void table_open(struct table *table, size_t bytes)
{
	table->points_each = bytes / POINT_BYTES;
	/* Two points are what interpolation takes. */
	if (table->points_each < 2)
		die(EXIT_USAGE, "--bytes: a table has at least %zu bytes", 2 * POINT_BYTES);
	table->rows = table->points_each * NUCLIDES;
	table->bytes = bytes;
	table->memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (table->memory == MAP_FAILED)
		die(EXIT_FAILED, "cannot map %zu bytes: %m", bytes);
	/* A kernel without THP has nothing to forbid. */
	madvise(table->memory, bytes, MADV_NOHUGEPAGE);
	table->grid = table->memory;
	for (unsigned int n = 0; n < NUCLIDES; n++)
		table->points[n] = (struct point *)(table->grid + table->rows) + n * table->points_each;
	for (unsigned int n = 0; n < NUCLIDES; n++)
		fill_points(table, n);
	fill_grid(table);
	if (mprotect(table->memory, bytes, PROT_READ))
		die(EXIT_FAILED, "cannot write-protect the table: %m");
}

void table_close(struct table *table)
{
	munmap(table->memory, table->bytes);
}

size_t table_search(const struct table *table, double energy)
{
	size_t low = 0, high = table->rows;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (table->grid[middle].energy <= energy)
			low = middle;
		else
			high = middle;
	}
	return low;
}
