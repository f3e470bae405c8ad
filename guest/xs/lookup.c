// SPDX-License-Identifier: GPL-2.0
#include "lookup.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "mix.h"
#include "pinned.h"
#include "quit.h"

/* How many nuclides a material has: what one lookup gathers. */
#define MATERIAL 5

struct share {
	const struct table *table;
	uint64_t first;
	uint64_t count;
	uint64_t hash;
	pthread_t thread;
};

/* Add one nuclide's cross sections at this energy, between the two points around it. */
static void gather(const struct table *table, size_t row, unsigned int nuclide, double energy, double *sum)
{
	size_t index = table->grid[row].index[nuclide];
	const struct point *low, *high;
	double part;

	if (index > table->points_each - 2)
		index = table->points_each - 2;
	low = &table->points[nuclide][index];
	high = low + 1;
	part = (energy - low->energy) / (high->energy - low->energy);
	for (unsigned int k = 0; k < REACTIONS; k++)
		sum[k] += low->section[k] + part * (high->section[k] - low->section[k]);
}

static uint64_t hash_of(uint64_t hash, const double *sum)
{
	for (unsigned int k = 0; k < REACTIONS; k++) {
		uint64_t bits;

		memcpy(&bits, &sum[k], sizeof(bits));
		hash = mix(hash ^ bits);
	}
	return hash;
}

static uint64_t look_up(const struct table *table, uint64_t number)
{
	double energy = mix_share(number), sum[REACTIONS] = { 0 };
	size_t row = table_search(table, energy);

	for (unsigned int i = 0; i < MATERIAL; i++)
		gather(table, row, (mix(number) + i * 3) % NUCLIDES, energy, sum);
	return hash_of(number, sum);
}

static void *run_share(void *argument)
{
	struct share *share = argument;
	uint64_t hash = 0;

	for (uint64_t i = 0; i < share->count; i++)
		hash += look_up(share->table, share->first + i);
	share->hash = hash;
	return NULL;
}

uint64_t lookups_run(const struct table *table, unsigned int threads, uint64_t each, uint64_t seed)
{
	struct share *shares = calloc(threads, sizeof(*shares));
	uint64_t hash = 0;

	if (!shares)
		quit(EXIT_FAILED, "no memory for %u threads", threads);
	for (unsigned int i = 0; i < threads; i++) {
		shares[i] = (struct share){ .table = table, .first = mix(seed) + i * each, .count = each };
		shares[i].thread = pinned_start(i, run_share, &shares[i]);
	}
	for (unsigned int i = 0; i < threads; i++) {
		pthread_join(shares[i].thread, NULL);
		hash += shares[i].hash;
	}
	free(shares);
	return hash;
}
