/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A node that is full of single pages with holes between them: memory for a huge folio must be made by compaction, which
 * takes long.
 */
#ifndef STALLBENCH_FULL_H
#define STALLBENCH_FULL_H

/* Fill the free memory of a node with single pages. */
void full_open(int node);

/* Fill what is free now, and make new holes. */
void full_renew(void);

#endif
