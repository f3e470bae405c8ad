// SPDX-License-Identifier: GPL-2.0
#include "damon.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sysfs.h"
#include "util.h"

#define ADMIN "/sys/kernel/mm/damon/admin/kdamonds"
#define KDAMOND ADMIN "/0"
#define CONTEXT KDAMOND "/contexts/0"

/* The kernel's own defaults of the two intervals. */
#define SAMPLE_US 5000
#define AGGREGATION_US 100000
/* As many samples are in an aggregation, so a region has at most so many accesses. */
#define MAX_ACCESSES (AGGREGATION_US / SAMPLE_US)
/*
 * What samples/damon/mtier.c lets a scheme move in a second, in slices, because a scheme stops at the end of the slice
 * in which it has reached its goal.
 */
#define QUOTA_MS 100
#define QUOTA_BYTES (UINT64_C(200) * 1024 * 1024 * QUOTA_MS / 1000)
/* Of the fast node, in 1/10000. The goals overlap: at least one scheme moves memory while there is any for it. */
#define USED_GOAL 9800
#define FREE_GOAL 500

/* Another process reads or writes a file of DAMON at the same time, or a kdamond is about to end. */
#define BUSY_TRIES 100
#define BUSY_NS 10000000

struct scheme {
	unsigned int number;
	const char *action;
	int target;		/* the node that memory moves to */
	unsigned int min_accesses, max_accesses;	/* of a region, in an aggregation */
	const char *goal;
	unsigned int goal_value;
	const char *young;	/* whether pages that were accessed since the last look are moved, or only others */
};

static pid_t owner;

static void put_value(const char *path, const char *value)
{
	unsigned int tries = BUSY_TRIES;
	bool done;

	while (!(done = sysfs_write(path, value)) && errno == EBUSY && --tries)
		sleep_ns(BUSY_NS);
	if (!done)
		die(EXIT_FAILED, "%s refuses '%s': %m", path, value);
}

static void put_number(const char *path, uint64_t number)
{
	char value[32];

	snprintf(value, sizeof(value), "%llu", (unsigned long long)number);
	put_value(path, value);
}

/* A file of a scheme. */
static const char *file_of(const struct scheme *scheme, const char *file)
{
	static char path[256];

	snprintf(path, sizeof(path), CONTEXT "/schemes/%u/%s", scheme->number, file);
	return path;
}

static void put_pattern(const struct scheme *scheme)
{
	put_number(file_of(scheme, "access_pattern/sz/min"), PAGE_BYTES);
	put_number(file_of(scheme, "access_pattern/sz/max"), ULONG_MAX);
	put_number(file_of(scheme, "access_pattern/nr_accesses/min"), scheme->min_accesses);
	put_number(file_of(scheme, "access_pattern/nr_accesses/max"), scheme->max_accesses);
	put_number(file_of(scheme, "access_pattern/age/min"), 0);
	put_number(file_of(scheme, "access_pattern/age/max"), UINT_MAX);
}

static void put_quota(const struct scheme *scheme, int fast)
{
	put_number(file_of(scheme, "quotas/bytes"), QUOTA_BYTES);
	put_number(file_of(scheme, "quotas/reset_interval_ms"), QUOTA_MS);
	put_number(file_of(scheme, "quotas/weights/sz_permil"), 0);
	put_number(file_of(scheme, "quotas/weights/nr_accesses_permil"), 100);
	put_number(file_of(scheme, "quotas/weights/age_permil"), 100);
	/* The other tuner approaches the goal in more seconds than a sample has. */
	put_value(file_of(scheme, "quotas/goal_tuner"), "temporal");
	put_number(file_of(scheme, "quotas/goals/nr_goals"), 1);
	put_value(file_of(scheme, "quotas/goals/0/target_metric"), scheme->goal);
	put_number(file_of(scheme, "quotas/goals/0/target_value"), scheme->goal_value);
	put_number(file_of(scheme, "quotas/goals/0/nid"), fast);
}

/* A region is an average: of a hot one the pages that nothing accesses stay, of a cold one those that are accessed. */
static void put_filter(const struct scheme *scheme)
{
	put_number(file_of(scheme, "ops_filters/nr_filters"), 1);
	put_value(file_of(scheme, "ops_filters/0/type"), "young");
	put_value(file_of(scheme, "ops_filters/0/matching"), "Y");
	put_value(file_of(scheme, "ops_filters/0/allow"), scheme->young);
}

static void put_scheme(const struct scheme *scheme, int fast)
{
	put_value(file_of(scheme, "action"), scheme->action);
	put_number(file_of(scheme, "target_nid"), scheme->target);
	put_pattern(scheme);
	put_quota(scheme, fast);
	put_filter(scheme);
}

static void put_targets(const pid_t *pids, unsigned int count)
{
	char path[256];

	put_number(CONTEXT "/targets/nr_targets", count);
	for (unsigned int i = 0; i < count; i++) {
		snprintf(path, sizeof(path), CONTEXT "/targets/%u/pid_target", i);
		put_number(path, pids[i]);
	}
}

static void stop(void)
{
	if (getpid() != owner)
		return;
	/* It has stopped already if the processes have ended, or was never started. */
	sysfs_write(KDAMOND "/state", "off");
	if (!sysfs_write(ADMIN "/nr_kdamonds", "0"))
		fprintf(stderr, "warning: cannot remove the kdamond: %m\n");
}

void damon_require(void)
{
	if (access(ADMIN "/nr_kdamonds", W_OK))
		die(EXIT_MISSING, "no /sys/kernel/mm/damon/admin: this kernel has no DAMON (CONFIG_DAMON_SYSFS)");
	if (sysfs_number(ADMIN "/nr_kdamonds"))
		die(EXIT_MISSING, "a kdamond exists already");
}

void damon_start(const pid_t *pids, unsigned int count, int fast, int slow)
{
	const struct scheme hot = { 0, "migrate_hot", fast, 1, MAX_ACCESSES, "node_mem_used_bp", USED_GOAL, "Y" };
	const struct scheme cold = { 1, "migrate_cold", slow, 0, 0, "node_mem_free_bp", FREE_GOAL, "N" };
	char first[64];

	owner = getpid();
	atexit(stop);
	put_number(ADMIN "/nr_kdamonds", 1);
	put_number(KDAMOND "/contexts/nr_contexts", 1);
	/* The kernel lists it first. */
	if (!sysfs_read_line(CONTEXT "/avail_operations", first, sizeof(first)) || strcmp(first, "vaddr"))
		die(EXIT_MISSING, "DAMON cannot monitor virtual addresses (CONFIG_DAMON_VADDR)");
	put_value(CONTEXT "/operations", "vaddr");
	put_number(CONTEXT "/monitoring_attrs/intervals/sample_us", SAMPLE_US);
	put_number(CONTEXT "/monitoring_attrs/intervals/aggr_us", AGGREGATION_US);
	put_targets(pids, count);
	put_number(CONTEXT "/schemes/nr_schemes", 2);
	put_scheme(&hot, fast);
	put_scheme(&cold, fast);
	put_value(KDAMOND "/state", "on");
}

struct damon_moved damon_moved(void)
{
	put_value(KDAMOND "/state", "update_schemes_stats");
	return (struct damon_moved){
		.hot = sysfs_number(CONTEXT "/schemes/0/stats/sz_applied") / PAGE_BYTES,
		.cold = sysfs_number(CONTEXT "/schemes/1/stats/sz_applied") / PAGE_BYTES,
	};
}
