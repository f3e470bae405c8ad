// SPDX-License-Identifier: GPL-2.0
/*
 * O_DIRECT: the device reads and writes the pages themselves, through a pin. Known content is written to
 * the device from memory that is never migrated, then read into pages that are, and the reverse.
 */
#include "stressors.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "../report.h"
#include "../span.h"
#include "blockdev.h"

#define DEVICE_BYTES ((size_t)1 << 20)
#define DISK_NAME "integrity.direct"

static struct loopdev loop;
static int device = -1;

static int open_disk(const char *dir)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/" DISK_NAME, dir);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_DIRECT | O_CLOEXEC, 0600);
	/* Without a name the file goes with its last descriptor, however the program ends. */
	unlink(path);
	return fd;
}

/* A memfd will not do: tmpfs accepts O_DIRECT but copies, so no page would be pinned. */
static const char *prepare(struct test_memory *mem)
{
	const char *dir = mem->options->file;

	device = dir ? open_disk(dir) : -1;
	if (device >= 0)
		return NULL;
	if (loopdev_open(&loop, DEVICE_BYTES))
		return "no --file DIR with O_DIRECT, and no loop device";
	device = open(loop.path, O_RDWR | O_DIRECT | O_CLOEXEC);
	return device < 0 ? "the loop device does not take O_DIRECT" : NULL;
}

static bool write_device(struct test_memory *mem, const void *memory, size_t bytes)
{
	if (pwrite(device, memory, bytes, 0) == (ssize_t)bytes)
		return true;
	report_broken(mem, "odirect", "O_DIRECT write of %zu bytes: %m", bytes);
	return false;
}

static bool read_device(struct test_memory *mem, void *memory, size_t bytes)
{
	if (pread(device, memory, bytes, 0) == (ssize_t)bytes)
		return true;
	report_broken(mem, "odirect", "O_DIRECT read of %zu bytes: %m", bytes);
	return false;
}

/* From the device to migrated pages: the data that the device wrote through the pin must arrive and stay. */
static void read_into(struct worker *worker, const struct span *span)
{
	span_stamp_copy(span, worker->scratch, 1);
	if (!write_device(span->mem, worker->scratch, span_bytes(span)) ||
	    !read_device(span->mem, span_address(span), span_bytes(span)))
		return;
	span_advance(span);
	span_check(span, "odirect");
	worker_pause(worker);
	span_check(span, "odirect");
}

/* From migrated pages to the device: the device must read the CPU's last store. */
static void write_from(struct worker *worker, const struct span *span)
{
	span_stamp(span);
	if (write_device(span->mem, span_address(span), span_bytes(span)) &&
	    read_device(span->mem, worker->scratch, span_bytes(span)))
		span_check_copy(span, worker->scratch, "odirect");
}

static bool run_once(struct worker *worker)
{
	struct span span;

	if (!span_pick_claimed(worker, &span, AREA_ANON | AREA_HUGETLB | AREA_SHMEM, AREA_MERGEABLE, SPAN_PAGES))
		return false;
	if (worker_random(worker, 4))
		read_into(worker, &span);
	else
		write_from(worker, &span);
	span_release(&span);
	return true;
}

static void finish(struct test_memory *mem)
{
	(void)mem;
	close(device);
	loopdev_close(&loop);
}

const struct stressor odirect_stressor = {
	.name = "odirect", .prepare = prepare, .run_once = run_once, .finish = finish,
};
