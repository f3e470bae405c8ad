/* SPDX-License-Identifier: GPL-2.0 */
/* A block device made of memory: a loop device over a memfd. */
#ifndef GUEST_LOOPDEV_H
#define GUEST_LOOPDEV_H

#include <stddef.h>

struct loopdev {
	char path[32];		/* /dev/loopN; empty while there is none */
	int fd;
	int backing;		/* memfd */
	void *memory;		/* its mapping, which keeps it locked */
	size_t bytes;
};

/* NULL, or what is missing. Its memory is locked, so that it is never swapped out to itself. */
const char *loopdev_open(struct loopdev *loop, size_t bytes);
void loopdev_close(struct loopdev *loop);

#endif
