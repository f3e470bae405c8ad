// SPDX-License-Identifier: GPL-2.0
#include "blockdev.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/swap.h>
#include <unistd.h>

#include "util.h"

static bool make_backing(struct loopdev *loop, size_t bytes)
{
	loop->bytes = bytes;
	loop->memory = MAP_FAILED;
	loop->backing = memfd_create("loop", MFD_CLOEXEC);
	if (loop->backing < 0 || ftruncate(loop->backing, bytes))
		return false;
	loop->memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, loop->backing, 0);
	return loop->memory != MAP_FAILED && !mlock(loop->memory, bytes);
}

static void drop_backing(struct loopdev *loop)
{
	if (loop->memory != MAP_FAILED)
		munmap(loop->memory, loop->bytes);
	if (loop->backing >= 0)
		close(loop->backing);
	loop->path[0] = '\0';
}

static bool attach(struct loopdev *loop, int number)
{
	snprintf(loop->path, sizeof(loop->path), "/dev/loop%d", number);
	loop->fd = open(loop->path, O_RDWR | O_CLOEXEC);
	if (loop->fd < 0)
		return false;
	if (!ioctl(loop->fd, LOOP_SET_FD, loop->backing))
		return true;
	close(loop->fd);
	return false;
}

const char *loopdev_open(struct loopdev *loop, size_t bytes)
{
	int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	bool attached = false;

	if (control < 0)
		return "no loop devices (CONFIG_BLK_DEV_LOOP)";
	/* Another program may take the free device first, so the kernel is asked more than once. */
	if (make_backing(loop, bytes))
		for (int try = 0; !attached && try < 8; try++)
			attached = attach(loop, ioctl(control, LOOP_CTL_GET_FREE));
	close(control);
	if (attached)
		return NULL;
	drop_backing(loop);
	return "no loop device could be set up";
}

void loopdev_close(struct loopdev *loop)
{
	if (!loop->path[0])
		return;
	ioctl(loop->fd, LOOP_CLR_FD);
	close(loop->fd);
	drop_backing(loop);
}

/* The first page of a swap area, as mkswap(8) writes it and swap_header of the kernel reads it. */
struct swap_header {
	char boot[1024];
	uint32_t version;
	uint32_t last_page;
	uint32_t bad_pages;
	char unused[PAGE_BYTES - 1024 - 12 - 10];
	char magic[10];
} __attribute__((packed));

const char *swapdev_open(struct swapdev *swap, size_t bytes)
{
	struct swap_header header = { .version = 1, .last_page = bytes / PAGE_BYTES - 1 };
	const char *missing = loopdev_open(&swap->loop, bytes);

	if (missing)
		return missing;
	memcpy(header.magic, "SWAPSPACE2", sizeof(header.magic));
	if (pwrite(swap->loop.fd, &header, sizeof(header), 0) == sizeof(header) && !fsync(swap->loop.fd) &&
	    !swapon(swap->loop.path, 0))
		return NULL;
	loopdev_close(&swap->loop);
	return "swapon refused the loop device (CONFIG_SWAP, root)";
}

bool swapdev_close(struct swapdev *swap)
{
	/* EINTR comes without a signal, too: the end of an io_uring interrupts the threads that used it. */
	while (swap->loop.path[0] && swapoff(swap->loop.path))
		if (errno != EINTR)
			return false;
	loopdev_close(&swap->loop);
	return true;
}
