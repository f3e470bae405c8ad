/* SPDX-License-Identifier: GPL-2.0 */
/* Memory tiers: the kernel promotes pages that are used and demotes the others. */
#ifndef GUEST_TIERING_H
#define GUEST_TIERING_H

#include <stdbool.h>
#include <stddef.h>

/* Ends the program with EXIT_MISSING unless `low` is a node of a lower memory tier than `top`. */
void tiering_require(int top, int low);

/* Until the program exits, reclaim demotes. */
void tiering_enable_demotion(void);

/*
 * Until the program exits, NUMA balancing promotes pages at hinting faults and scans page tables every `scan_ms` to
 * 2 * `scan_ms` milliseconds, and reclaim demotes. The kernel's own interval grows from one second to one minute.
 */
void tiering_enable(unsigned int scan_ms);

/*
 * Until the program exits, NUMA balancing migrates pages to the node that uses them, and scans as tiering_enable() says.
 * False if the kernel has none.
 */
bool tiering_balance(unsigned int scan_ms);

/*
 * From now on the calling thread, and threads that it starts later, allocate on `node` only. NUMA balancing does not
 * scan that memory, as a scan flushes TLBs, but only what is given to tiering_offer().
 */
void tiering_hold(int node);

/* Let this memory be promoted to and demoted from either node. */
void tiering_offer(void *memory, size_t bytes, int top, int low);

/* Until the program exits, NUMA balancing is off. A kernel without it is left as it is. */
void tiering_disable(void);

/* Let reclaim demote up to `bytes` of the anonymous pages of `node`. */
void tiering_demote(int node, size_t bytes);

#endif
