/* SPDX-License-Identifier: GPL-2.0 */
/* Random lookups in the table, divided among threads. */
#ifndef TLBBENCH_LOOKUP_H
#define TLBBENCH_LOOKUP_H

#include <stdint.h>

#include "table.h"

/*
 * Do `each` lookups in each of `threads`, the n-th pinned to the n-th CPU. Returns their hash: it depends on the table,
 * the number of lookups and `seed`, not on their order.
 */
uint64_t lookups_run(const struct table *table, unsigned int threads, uint64_t each, uint64_t seed);

#endif
