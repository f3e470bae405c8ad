/* SPDX-License-Identifier: GPL-2.0 */
/* Memory nodes. */
#ifndef GUEST_NODE_H
#define GUEST_NODE_H

#include <stddef.h>
#include <stdint.h>

/* End the program with EXIT_MISSING unless the node exists and has memory. */
void node_require(const char *option, int node);

/*
 * kB free on all nodes. Unlike MemFree this counts the pages on per-CPU lists too, which may hold
 * tens of megabytes after a busy time and are as free as any.
 */
uint64_t nodes_free_kb(void);

/* kB free on one node; 0 where there is no such node. */
uint64_t node_free_kb(int node);

/* Let memory at this address be allocated on this node only. */
void node_bind(void *memory, size_t bytes, int node);

#endif
