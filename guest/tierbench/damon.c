// SPDX-License-Identifier: GPL-2.0
#include "damon.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sysfs.h"
#include "util.h"

#define ADMIN "/sys/kernel/mm/damon/admin/kdamonds"
#define CONTEXT "contexts/0"
#define REGIONS CONTEXT "/targets/0/regions"
#define SCHEME CONTEXT "/schemes/0"
#define QUOTAS SCHEME "/quotas"
#define FILTERS SCHEME "/ops_filters"
#define PATTERN SCHEME "/access_pattern"

/* The kernel's own defaults of the two intervals. */
#define SAMPLE_US 5000
#define AGGREGATION_US 100000
/* As many samples are in an aggregation, so a region has at most so many accesses. */
#define MAX_ACCESSES (AGGREGATION_US / SAMPLE_US)
/*
 * What mtier.c lets a scheme move in a second, in slices, because a scheme stops at the end of the slice in which it
 * has reached its goal.
 */
#define QUOTA_MS 100
#define QUOTA_BYTES (UINT64_C(200) * 1024 * 1024 * QUOTA_MS / 1000)
/* Of the fast node, in 1/10000. The goals overlap: at least one scheme moves memory while there is any for it. */
#define USED_GOAL 9800
#define FREE_GOAL 500

/* Another process reads or writes a file of DAMON at the same time. */
#define BUSY_TRIES 100
#define BUSY_NS 10000000

enum { HOT, COLD, KDAMONDS };

struct scheme {
	const char *action;
	int node;		/* that is monitored */
	int target;		/* that memory moves to */
	unsigned int min_accesses, max_accesses; /* of a region, in an aggregation */
	const char *goal;
	unsigned int goal_value;
	const char *young;	/* whether pages that were accessed since the last look are moved, or only others */
};

static pid_t owner;

static const char *path_of(unsigned int kdamond, const char *file)
{
	static char path[256];

	snprintf(path, sizeof(path), ADMIN "/%u/%s", kdamond, file);
	return path;
}

static void put_path(const char *path, const char *value)
{
	unsigned int tries = BUSY_TRIES;
	bool done;

	while (!(done = sysfs_write(path, value)) && errno == EBUSY && --tries)
		sleep_ns(BUSY_NS);
	if (!done)
		die(EXIT_FAILED, "%s refuses '%s': %m", path, value);
}

static void put_text(unsigned int kdamond, const char *file, const char *value)
{
	put_path(path_of(kdamond, file), value);
}

static void put(unsigned int kdamond, const char *file, uint64_t number)
{
	char value[32];

	snprintf(value, sizeof(value), "%llu", (unsigned long long)number);
	put_text(kdamond, file, value);
}

/* The physical addresses of a node, from the first to the last page of all its zones. */
static void find_memory(int node, uint64_t *start, uint64_t *end)
{
	FILE *file = fopen("/proc/zoneinfo", "re");
	unsigned long spanned = 0, first;
	char line[256];
	int at = -1;

	*start = UINT64_MAX;
	*end = 0;
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "Node %d, zone", &at) == 1 || sscanf(line, " spanned %lu", &spanned) == 1 ||
		    at != node || sscanf(line, " start_pfn: %lu", &first) != 1)
			continue;
		if (first * PAGE_BYTES < *start)
			*start = first * PAGE_BYTES;
		if ((first + spanned) * PAGE_BYTES > *end)
			*end = (first + spanned) * PAGE_BYTES;
	}
	if (file)
		fclose(file);
	if (*start >= *end)
		die(EXIT_FAILED, "/proc/zoneinfo names no memory of node %d", node);
}

static void put_monitoring(unsigned int kdamond, int node)
{
	uint64_t start, end;

	find_memory(node, &start, &end);
	put(kdamond, "contexts/nr_contexts", 1);
	put_text(kdamond, CONTEXT "/operations", "paddr");
	put(kdamond, CONTEXT "/monitoring_attrs/intervals/sample_us", SAMPLE_US);
	put(kdamond, CONTEXT "/monitoring_attrs/intervals/aggr_us", AGGREGATION_US);
	put(kdamond, CONTEXT "/targets/nr_targets", 1);
	put(kdamond, REGIONS "/nr_regions", 1);
	put(kdamond, REGIONS "/0/start", start);
	put(kdamond, REGIONS "/0/end", end);
}

static void put_quota(unsigned int kdamond, const struct scheme *scheme, int fast)
{
	put(kdamond, QUOTAS "/bytes", QUOTA_BYTES);
	put(kdamond, QUOTAS "/reset_interval_ms", QUOTA_MS);
	put(kdamond, QUOTAS "/weights/sz_permil", 0);
	put(kdamond, QUOTAS "/weights/nr_accesses_permil", 100);
	put(kdamond, QUOTAS "/weights/age_permil", 100);
	/* The other tuner approaches the goal in more seconds than a sample has. */
	put_text(kdamond, QUOTAS "/goal_tuner", "temporal");
	put(kdamond, QUOTAS "/goals/nr_goals", 1);
	put_text(kdamond, QUOTAS "/goals/0/target_metric", scheme->goal);
	put(kdamond, QUOTAS "/goals/0/target_value", scheme->goal_value);
	put(kdamond, QUOTAS "/goals/0/nid", fast);
}

static void put_scheme(unsigned int kdamond, const struct scheme *scheme, int fast)
{
	put(kdamond, CONTEXT "/schemes/nr_schemes", 1);
	put_text(kdamond, SCHEME "/action", scheme->action);
	put(kdamond, SCHEME "/target_nid", scheme->target);
	put(kdamond, PATTERN "/sz/min", PAGE_BYTES);
	put(kdamond, PATTERN "/sz/max", ULONG_MAX);
	put(kdamond, PATTERN "/nr_accesses/min", scheme->min_accesses);
	put(kdamond, PATTERN "/nr_accesses/max", scheme->max_accesses);
	put(kdamond, PATTERN "/age/min", 0);
	put(kdamond, PATTERN "/age/max", UINT_MAX);
	put_quota(kdamond, scheme, fast);
	/* Accesses are those of a region; the filter is for each page. */
	put(kdamond, FILTERS "/nr_filters", 1);
	put_text(kdamond, FILTERS "/0/type", "young");
	put_text(kdamond, FILTERS "/0/matching", "Y");
	put_text(kdamond, FILTERS "/0/allow", scheme->young);
}

static void stop(void)
{
	if (getpid() != owner)
		return;
	/* The one that the kernel has refused to start is off. */
	for (unsigned int kdamond = 0; kdamond < KDAMONDS; kdamond++)
		sysfs_write(path_of(kdamond, "state"), "off");
	if (!sysfs_write(ADMIN "/nr_kdamonds", "0"))
		fprintf(stderr, "warning: cannot remove the kdamonds: %m\n");
}

void damon_require(void)
{
	if (access(ADMIN "/nr_kdamonds", W_OK))
		die(EXIT_MISSING, "no /sys/kernel/mm/damon/admin: this kernel has no DAMON (CONFIG_DAMON_SYSFS)");
	if (sysfs_number(ADMIN "/nr_kdamonds"))
		die(EXIT_FAILED, ADMIN "/nr_kdamonds is not 0: another program uses DAMON");
}

void damon_start(int fast, int slow)
{
	const struct scheme schemes[KDAMONDS] = {
		[HOT] = { "migrate_hot", slow, fast, 1, MAX_ACCESSES, "node_mem_used_bp", USED_GOAL, "Y" },
		[COLD] = { "migrate_cold", fast, slow, 0, 0, "node_mem_free_bp", FREE_GOAL, "N" },
	};

	owner = getpid();
	put_path(ADMIN "/nr_kdamonds", "2");
	atexit(stop);
	for (unsigned int kdamond = 0; kdamond < KDAMONDS; kdamond++) {
		put_monitoring(kdamond, schemes[kdamond].node);
		put_scheme(kdamond, &schemes[kdamond], fast);
	}
	for (unsigned int kdamond = 0; kdamond < KDAMONDS; kdamond++)
		put_text(kdamond, "state", "on");
}

static uint64_t moved_by(unsigned int kdamond)
{
	put_text(kdamond, "state", "update_schemes_stats");
	return sysfs_number(path_of(kdamond, SCHEME "/stats/sz_applied")) / PAGE_BYTES;
}

struct damon_moved damon_moved(void)
{
	return (struct damon_moved){ .hot = moved_by(HOT), .cold = moved_by(COLD) };
}
