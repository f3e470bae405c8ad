/* SPDX-License-Identifier: GPL-2.0 */
/* Blocks of pages that the module alloc_blocks allocates, in the context of the calling thread. */
#ifndef COMPACTBENCH_BLOCKS_H
#define COMPACTBENCH_BLOCKS_H

#include <stdint.h>

struct blocks {
	uint64_t got;
	uint64_t ns;	/* inside the kernel */
};

/* Ends the program with EXIT_MISSING if the module is not loaded. */
void blocks_require(void);

/* Try `count` times to allocate a block, which the kernel has to make by compaction. */
struct blocks blocks_allocate(int node, unsigned int order, uint64_t count);

/* Take all blocks that are free as they are: compaction has to make each further one. */
struct blocks blocks_take(int node, unsigned int order);

void blocks_free(void);

/* Let the next compaction forget which parts of the node it was to skip. */
void blocks_forget_skipped(int node);

#endif
