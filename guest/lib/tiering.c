// SPDX-License-Identifier: GPL-2.0
#include "tiering.h"

#include <dirent.h>
#include <errno.h>
#include <numaif.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "sysfs.h"
#include "util.h"

#ifndef MPOL_F_NUMA_BALANCING
#define MPOL_F_NUMA_BALANCING (1 << 13)
#endif

#define NODE_BITS (8 * sizeof(unsigned long))
#define TIERS_DIR "/sys/devices/virtual/memory_tiering"
#define BALANCING "/proc/sys/kernel/numa_balancing"
#define SCANNING "/sys/kernel/debug/sched/numa_balancing/"

/* Whether the node is in a list as "0-1,3". */
static bool is_listed(const char *list, long node)
{
	char *end;

	for (const char *at = list; *at; at = *end ? end + 1 : end) {
		long first = strtol(at, &end, 10), last = first;

		if (end == at)
			return false;
		if (*end == '-')
			last = strtol(end + 1, &end, 10);
		if (node >= first && node <= last)
			return true;
	}
	return false;
}

/* The number of the node's tier, which grows from the fastest to the slowest; -1 if it has none. */
static int tier_of(int node)
{
	DIR *dir = opendir(TIERS_DIR);
	struct dirent *entry;
	char path[sizeof(TIERS_DIR) + 300], nodes[128];
	int tier, found = -1;

	while (dir && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), TIERS_DIR "/%s/nodelist", entry->d_name);
		if (sscanf(entry->d_name, "memory_tier%d", &tier) == 1 &&
		    sysfs_read_line(path, nodes, sizeof(nodes)) && is_listed(nodes, node))
			found = tier;
	}
	if (dir)
		closedir(dir);
	return found;
}

void tiering_require(int top, int low)
{
	int above = tier_of(top), below = tier_of(low);

	if (above < 0 || below <= above)
		die(EXIT_MISSING,
		    "node %d (memory tier %d) is in no lower tier than node %d (memory tier %d): "
		    "nothing is demoted or promoted between them", low, below, top, above);
}

static void require(const char *path, const char *value)
{
	if (!sysfs_set_until_exit(path, value))
		die(errno == ENOENT ? EXIT_MISSING : EXIT_FAILED, "%s = %s: %m", path, value);
}

static void scan_every(unsigned int scan_ms)
{
	char min[16], max[16];

	snprintf(min, sizeof(min), "%u", scan_ms);
	snprintf(max, sizeof(max), "%u", 2 * scan_ms);
	require(SCANNING "scan_delay_ms", min);
	require(SCANNING "scan_period_min_ms", min);
	require(SCANNING "scan_period_max_ms", max);
}

bool tiering_balance(unsigned int scan_ms)
{
	if (!sysfs_set_until_exit(BALANCING, "1"))
		return false;
	scan_every(scan_ms);
	return true;
}

void tiering_enable_demotion(void)
{
	require("/sys/kernel/mm/numa/demotion_enabled", "true");
}

void tiering_enable(unsigned int scan_ms)
{
	tiering_enable_demotion();
	/* Linux 7.3 ignores a write to `reclaim` unless a node has more of these pages than the ratios say. */
	require("/proc/sys/vm/min_unmapped_ratio", "0");
	require("/proc/sys/vm/min_slab_ratio", "0");
	scan_every(scan_ms);
	require(BALANCING, "2");
}

void tiering_hold(int node)
{
	unsigned long nodes = 1UL << node;

	if (set_mempolicy(MPOL_BIND, &nodes, NODE_BITS))
		die(EXIT_FAILED, "set_mempolicy: %m");
}

void tiering_offer(void *memory, size_t bytes, int top, int low)
{
	unsigned long nodes = 1UL << top | 1UL << low;

	if (mbind(memory, bytes, MPOL_BIND | MPOL_F_NUMA_BALANCING, &nodes, NODE_BITS, 0))
		die(EXIT_MISSING, "mbind with MPOL_F_NUMA_BALANCING: %m");
}

void tiering_disable(void)
{
	if (!sysfs_set_until_exit(BALANCING, "0") && errno != ENOENT)
		die(EXIT_FAILED, "%s = 0: %m", BALANCING);
}

void tiering_demote(int node, size_t bytes)
{
	char path[80], order[64];

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/reclaim", node);
	snprintf(order, sizeof(order), "%zu swappiness=max", bytes);
	/* EAGAIN: the kernel found less to demote. EBUSY: reclaim of this node runs already. */
	if (!sysfs_write(path, order) && errno != EAGAIN && errno != EBUSY && errno != EINTR)
		die(errno == ENOENT ? EXIT_MISSING : EXIT_FAILED, "%s: %m", path);
}
