// SPDX-License-Identifier: GPL-2.0
#include "swapdev.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/swap.h>
#include <unistd.h>

#include "stamp.h"

/* The first page of a swap area, as mkswap(8) writes it and swap_header of the kernel reads it. */
struct swap_header {
	char boot[1024];
	uint32_t version;
	uint32_t last_page;
	uint32_t bad_pages;
	char unused[PAGE_BYTES - 1024 - 12 - 10];
	char magic[10];
} __attribute__((packed));

static bool write_header(int fd, size_t bytes)
{
	struct swap_header header = { .version = 1, .last_page = bytes / PAGE_BYTES - 1 };

	memcpy(header.magic, "SWAPSPACE2", sizeof(header.magic));
	return pwrite(fd, &header, sizeof(header), 0) == sizeof(header) && !fsync(fd);
}

const char *swapdev_open(struct swapdev *swap, size_t bytes)
{
	const char *missing = loopdev_open(&swap->loop, bytes);

	if (missing)
		return missing;
	if (write_header(swap->loop.fd, bytes) && !swapon(swap->loop.path, 0))
		return NULL;
	loopdev_close(&swap->loop);
	return "swapon refused the loop device (CONFIG_SWAP, root)";
}

bool swapdev_close(struct swapdev *swap)
{
	/* No signal is needed for EINTR: the end of an io_uring interrupts those who used it, too. */
	while (swap->loop.path[0] && swapoff(swap->loop.path))
		if (errno != EINTR)
			return false;
	loopdev_close(&swap->loop);
	return true;
}
