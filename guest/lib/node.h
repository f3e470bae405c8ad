/* SPDX-License-Identifier: GPL-2.0 */
/* Memory nodes. */
#ifndef GUEST_NODE_H
#define GUEST_NODE_H

#include <stddef.h>
#include <stdint.h>

/* End the program with EXIT_MISSING unless the node exists and has memory. */
void node_require(const char *option, int node);

/* MemFree of one node in kB. */
uint64_t node_free_kb(int node);

/* Let memory at this address be allocated on this node only. */
void node_bind(void *memory, size_t bytes, int node);

#endif
