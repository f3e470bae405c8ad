/* SPDX-License-Identifier: GPL-2.0 */
/* Anonymous memory of hugetlb folios, which come from a reserve of each node. */
#ifndef GUEST_HUGETLB_H
#define GUEST_HUGETLB_H

#include <stddef.h>

/* The largest size that x86-64 has. */
#define HUGETLB_LARGEST ((size_t)1 << 30)

/*
 * Memory that is aligned to its folios and not yet allocated. Until hugetlb_unmap(), or the exit, each of the two nodes
 * has a reserve for all of it, so that it can move: a folio of 1 GiB comes from a reserve only. Returns NULL if the
 * kernel has no folios of this size, or a node no room.
 */
char *hugetlb_map(size_t bytes, size_t folio_bytes, const int nodes[2]);
void hugetlb_unmap(char *base, size_t bytes, size_t folio_bytes, const int nodes[2]);

#endif
