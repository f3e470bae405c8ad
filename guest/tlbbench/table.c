// SPDX-License-Identifier: GPL-2.0
#include "table.h"

#include <sys/mman.h>

/* One point of each nuclide, with the rows of the grid that belong to them. */
#define POINT_BYTES (NUCLIDES * (sizeof(struct grid_row) + sizeof(struct point)))

/* Points of the nuclides alternate, so the energies of the rows are in order without sorting. */
static void fill(struct table *table)
{
	for (size_t row = 0; row < table->rows; row++) {
		size_t nuclide = row % NUCLIDES, i = row / NUCLIDES;
		struct point *point = &table->points[nuclide][i];

		point->energy = (row + 0.5) / table->rows;
		for (unsigned int k = 0; k < REACTIONS; k++)
			point->section[k] = mix_share(row * REACTIONS + k);
		table->grid[row].energy = point->energy;
		for (unsigned int n = 0; n < NUCLIDES; n++)
			table->grid[row].index[n] = i - (n > nuclide && i);
	}
}

void table_open(struct table *table, size_t bytes)
{
	table->points_each = bytes / POINT_BYTES;
	/* Interpolation needs two points. */
	if (table->points_each < 2)
		die(EXIT_USAGE, "--bytes: a table has at least %zu bytes", 2 * POINT_BYTES);
	table->rows = table->points_each * NUCLIDES;
	table->bytes = bytes;
	table->memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (table->memory == MAP_FAILED)
		die(EXIT_FAILED, "cannot map %zu bytes: %m", bytes);
	/* Fails on a kernel without THP, where all folios are single pages anyway. */
	madvise(table->memory, bytes, MADV_NOHUGEPAGE);
	table->grid = table->memory;
	for (unsigned int n = 0; n < NUCLIDES; n++)
		table->points[n] = (struct point *)(table->grid + table->rows) + n * table->points_each;
	fill(table);
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
