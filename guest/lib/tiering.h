/* SPDX-License-Identifier: GPL-2.0 */
/* Memory tiers: promotion of pages that are used, demotion of others. */
#ifndef GUEST_TIERING_H
#define GUEST_TIERING_H

#include <stddef.h>

/* Ends the program with EXIT_MISSING unless `low` is a node of a lower memory tier than `top`. */
void tiering_require(int top, int low);

/*
 * Promote by hinting faults, demote in reclaim, look at page tables every `scan_ms` milliseconds or half as often; until
 * the program exits. The kernel's own pace is meant for hours: a second at first, up to a minute later.
 */
void tiering_enable(unsigned int scan_ms);

/*
 * Of all the program's memory, look only at what tiering_offer() offers from now on; threads that begin later are bound,
 * too. The rest stays on `node`: each look at it would flush.
 */
void tiering_hold(int node);

/* Let this memory be promoted to and demoted from either node. */
void tiering_offer(void *memory, size_t bytes, int top, int low);

/* NUMA balancing of no kind, until the program exits. A kernel without it has nothing to turn off. */
void tiering_disable(void);

/* Let reclaim demote anonymous pages of `node`, `bytes` of them or as many as it finds. */
void tiering_demote(int node, size_t bytes);

#endif
