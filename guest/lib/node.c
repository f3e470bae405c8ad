// SPDX-License-Identifier: GPL-2.0
#include "node.h"

#include <numa.h>
#include <numaif.h>

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

uint64_t node_free_kb(int node)
{
	long long free_bytes = 0;

	if (numa_node_size64(node, &free_bytes) < 0)
		quit(EXIT_FAILED, "cannot read the free memory of node %d: %m", node);
	return free_bytes / 1024;
}

void node_bind(void *memory, size_t bytes, int node)
{
	struct bitmask *nodes = numa_allocate_nodemask();

	numa_bitmask_setbit(nodes, node);
	if (mbind(memory, bytes, MPOL_BIND, nodes->maskp, nodes->size + 1, 0))
		quit(EXIT_FAILED, "mbind to node %d: %m", node);
	numa_free_nodemask(nodes);
}
