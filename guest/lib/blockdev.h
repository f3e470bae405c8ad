/* SPDX-License-Identifier: GPL-2.0 */
/* Block devices in memory: a loop device over a memfd, and swap space on one. */
#ifndef GUEST_BLOCKDEV_H
#define GUEST_BLOCKDEV_H

#include <stdbool.h>
#include <stddef.h>

struct loopdev {
	char path[32];		/* /dev/loopN; empty while there is none */
	int fd;
	int backing;		/* memfd */
	void *memory;		/* its mapping, which keeps it locked */
	size_t bytes;
};

/* Returns NULL, or the missing feature. Its memory is locked, so that the kernel never swaps it out to itself. */
const char *loopdev_open(struct loopdev *loop, size_t bytes);
void loopdev_close(struct loopdev *loop);

struct swapdev {
	struct loopdev loop;
};

/*
 * Swap space while the program runs. Returns NULL, or the missing feature. It is a loop device and not zram, because the
 * kernel keeps no swap cache for zram, and migration has to handle the swap cache.
 */
const char *swapdev_open(struct swapdev *swap, size_t bytes);

/* False and errno if the kernel cannot read everything back; then the swap space stays in use. */
bool swapdev_close(struct swapdev *swap);

#endif
