// SPDX-License-Identifier: GPL-2.0
#include "lookup.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counters.h"
#include "folio.h"
#include "json.h"
#include "migration.h"
#include "workload.h"

/* The number of nuclides in a material, whose cross sections one lookup adds up. */
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

static uint64_t look_up(const struct table *table, uint64_t number)
{
	double energy = mix_share(number), sum[REACTIONS] = { 0 };
	size_t row = table_search(table, energy);
	uint64_t hash = number, bits;

	for (unsigned int i = 0; i < MATERIAL; i++)
		gather(table, row, (mix(number) + i * 3) % NUCLIDES, energy, sum);
	for (unsigned int k = 0; k < REACTIONS; k++) {
		memcpy(&bits, &sum[k], sizeof(bits));
		hash = mix(hash ^ bits);
	}
	return hash;
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
		die(EXIT_FAILED, "no memory for %u threads", threads);
	for (unsigned int i = 0; i < threads; i++) {
		shares[i] = (struct share){ .table = table, .first = mix(seed) + i * each, .count = each };
		shares[i].thread = cpu_pin_start(i, run_share, &shares[i]);
	}
	for (unsigned int i = 0; i < threads; i++) {
		pthread_join(shares[i].thread, NULL);
		hash += shares[i].hash;
	}
	free(shares);
	return hash;
}

static void print_start(const struct options *options, const struct table *table)
{
	struct json json;

	json_begin(&json, "start");
	json_text(&json, "workload", options->workload->name);
	json_int(&json, "bytes", table->bytes);
	json_int(&json, "grid_rows", table->rows);
	json_int(&json, "threads", options->readers);
	json_int(&json, "lookups_each", options->lookups);
	json_end(&json);
}

static void take_sample(const struct options *options, const struct table *table)
{
	uint64_t lookups = options->lookups * options->readers, start, ns, hash;
	static struct counters before, after, settled;
	uint64_t before_free_kb = nodes_free_kb();
	struct json json;
	char text[32];

	counters_read(&before);
	start = clock_ns();
	hash = lookups_run(table, options->readers, options->lookups, options->round);
	ns = clock_ns() - start;
	counters_read(&after);
	/* The flushes that are still pending belong to the sample. */
	ns += migrc_drain();
	counters_read(&settled);
	snprintf(text, sizeof(text), "%016" PRIx64, hash);
	json_begin(&json, "sample");
	json_text(&json, "workload", options->workload->name);
	json_int(&json, "round", options->round);
	json_int(&json, "lookups", lookups);
	json_int(&json, "elapsed_ns", ns);
	json_text(&json, "hash", text);
	json_int(&json, "free_top_kb", node_free_kb(options->from));
	json_int(&json, "free_low_kb", node_free_kb(options->to));
	json_int(&json, "before_free_kb", before_free_kb);
	json_int(&json, "settled_free_kb", nodes_free_kb());
	migrc_print(&json);
	counters_print(&json, "", &before, &after);
	counters_print(&json, "settled_", &before, &settled);
	json_end(&json);
}

void measure_lookups(const struct options *options)
{
	struct table table;

	table_open(&table, options->bytes);
	print_start(options, &table);
	take_sample(options, &table);
	table_close(&table);
}
