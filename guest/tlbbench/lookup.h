/* SPDX-License-Identifier: GPL-2.0 */
/* Random lookups in the table, shared out among threads. */
#ifndef TLBBENCH_LOOKUP_H
#define TLBBENCH_LOOKUP_H

#include <stdint.h>

#include "table.h"

/*
 * `each` lookups by each of `threads`, the n-th of them on the n-th CPU. Returns their hash: it is the same
 * whatever the order, for the same table, number of lookups and `seed`.
 */
uint64_t lookups_run(const struct table *table, unsigned int threads, uint64_t each, uint64_t seed);

#endif
