/* SPDX-License-Identifier: GPL-2.0 */
/* As much of io_uring as one request at a time needs, by raw system calls. */
#ifndef GUEST_URING_H
#define GUEST_URING_H

#include <linux/io_uring.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct uring {
	int fd;
	void *rings;
	size_t rings_bytes;
	struct io_uring_sqe *entries;
	size_t entries_bytes;
	struct io_uring_params params;
};

/* False and errno if the kernel has none, or forbids it. */
bool uring_open(struct uring *ring);
void uring_close(struct uring *ring);

/* Pin memory as fixed buffer 0 until it is unpinned. */
bool uring_pin(struct uring *ring, void *memory, size_t bytes);
bool uring_unpin(struct uring *ring);

/* IORING_OP_READ_FIXED or WRITE_FIXED between a file's start and buffer 0; bytes done or -errno. */
ssize_t uring_transfer(struct uring *ring, int opcode, int fd, void *memory, size_t bytes);

#endif
