/* SPDX-License-Identifier: GPL-2.0 */
/* move_pages(2), for the selftests of /sys/kernel/mm/migration. */
#ifndef SELFTESTS_MM_FERRY_MOVE_H
#define SELFTESTS_MM_FERRY_MOVE_H

#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MPOL_MF_MOVE
#define MPOL_MF_MOVE		2
#define MPOL_MF_MOVE_ALL	4
#endif

/*
 * Move @nr pages, one every @step bytes, by one call. Without flags none moves.
 * Return how many are on the node then, or the negative errno.
 */
static inline long move_pages_to(void *memory, size_t nr, size_t step,
				 int node, int flags)
{
	void **pages = calloc(nr, sizeof(*pages));
	int *nodes = calloc(nr, sizeof(*nodes));
	int *status = calloc(nr, sizeof(*status));
	long there = -ENOMEM;

	for (size_t i = 0; pages && nodes && i < nr; i++) {
		pages[i] = (char *)memory + i * step;
		nodes[i] = node;
	}
	if (pages && nodes && status) {
		there = 0;
		if (flags && syscall(__NR_move_pages, 0, nr, pages, nodes,
				     status, flags) < 0)
			there = -errno;
		/* The second page of a huge one had EBUSY: ask again. */
		if (!there && syscall(__NR_move_pages, 0, nr, pages, NULL,
				      status, 0))
			there = -errno;
	}
	for (size_t i = 0; there >= 0 && i < nr; i++)
		there += status[i] == node;
	free(pages);
	free(nodes);
	free(status);
	return there;
}

#endif
