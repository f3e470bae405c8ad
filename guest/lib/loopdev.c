// SPDX-License-Identifier: GPL-2.0
#include "loopdev.h"

#include <fcntl.h>
#include <linux/loop.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

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
	/* Someone else may take the free one first, so ask more than once. */
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
