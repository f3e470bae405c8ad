// SPDX-License-Identifier: GPL-2.0
#include "node.h"

#include <inttypes.h>
#include <numa.h>
#include <numaif.h>
#include <stdio.h>
#include <unistd.h>

#include "quit.h"

void node_require(const char *option, int node)
{
	long long free_bytes;

	if (numa_available() < 0)
		quit(EXIT_MISSING, "%s: this kernel has no NUMA system calls (CONFIG_NUMA)", option);
	if (node > numa_max_node() || numa_node_size64(node, &free_bytes) <= 0)
		quit(EXIT_MISSING, "%s: node %d has no memory; the highest node is %d",
		     option, node, numa_max_node());
}

uint64_t nodes_free_kb(void)
{
	FILE *zones = fopen("/proc/zoneinfo", "re");
	uint64_t pages = 0, count;
	char line[256];

	if (!zones)
		quit(EXIT_MISSING, "cannot read /proc/zoneinfo: %m");
	while (fgets(line, sizeof(line), zones)) {
		/* "pages free" is the zone's own line, "count:" that of each CPU's lists. */
		if (sscanf(line, "  pages free %" SCNu64, &count) == 1 ||
		    sscanf(line, " count: %" SCNu64, &count) == 1)
			pages += count;
	}
	fclose(zones);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

uint64_t node_free_kb(int node)
{
	char path[64], line[128];
	uint64_t free_kb = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/meminfo", node);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Node %*d MemFree: %" SCNu64, &free_kb) == 1)
			break;
	if (file)
		fclose(file);
	return free_kb;
}

void node_bind(void *memory, size_t bytes, int node)
{
	struct bitmask *nodes = numa_allocate_nodemask();

	numa_bitmask_setbit(nodes, node);
	if (mbind(memory, bytes, MPOL_BIND, nodes->maskp, nodes->size + 1, 0))
		quit(EXIT_FAILED, "mbind to node %d: %m", node);
	numa_free_nodemask(nodes);
}
