// SPDX-License-Identifier: GPL-2.0
/*
 * Read and write the file of a shared mapping with pread(2) and pwrite(2), in memory (memfd) and on
 * disk. Pages on disk are also written back and dropped, which reveals a lost dirty bit.
 */
#include "stressors.h"

#include <fcntl.h>
#include <unistd.h>

#include "../report.h"
#include "../span.h"

static off_t offset(const struct span *span)
{
	return (off_t)span->first * PAGE_BYTES;
}

static const char *prepare(struct test_memory *mem, unsigned int trait, const char *reason)
{
	for (size_t i = 0; i < mem->count; i++)
		if (mem->areas[i].traits & trait)
			return NULL;
	return reason;
}

static const char *prepare_shmem(struct test_memory *mem)
{
	return prepare(mem, AREA_SHMEM, "no memfd");
}

static const char *prepare_disk(struct test_memory *mem)
{
	return prepare(mem, AREA_DISK, "no --file DIR");
}

/* Write pages back and drop them from the page cache; pages in use stay, which is no failure. */
static void drop(const struct span *span)
{
	sync_file_range(span->area->fd, offset(span), span_bytes(span),
			SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
	posix_fadvise(span->area->fd, offset(span), span_bytes(span), POSIX_FADV_DONTNEED);
}

static bool read_span(struct worker *worker, unsigned int trait)
{
	const char *by = worker->stressor->name;
	struct span span;
	bool done;

	if (!span_pick_claimed(worker, &span, trait, 0, SPAN_PAGES))
		return false;
	done = pread(span.area->fd, worker->scratch, span_bytes(&span), offset(&span)) ==
	       (ssize_t)span_bytes(&span);
	if (done)
		span_check_copy(&span, worker->scratch, by);
	else
		report_broken(span.mem, by, "pread: %m");
	span_release(&span);
	return done;
}

static bool write_span(struct worker *worker, unsigned int trait)
{
	const char *by = worker->stressor->name;
	struct span span;
	bool done;

	if (!span_pick_claimed(worker, &span, trait, 0, SPAN_PAGES))
		return false;
	span_stamp_copy(&span, worker->scratch, 1);
	done = pwrite(span.area->fd, worker->scratch, span_bytes(&span), offset(&span)) ==
	       (ssize_t)span_bytes(&span);
	if (done) {
		span_advance(&span);
		if (trait & AREA_DISK && !worker_random(worker, 8))
			drop(&span);
		span_check(&span, by);
	} else {
		report_broken(span.mem, by, "pwrite: %m");
	}
	span_release(&span);
	return done;
}

static bool read_shmem(struct worker *worker)
{
	return read_span(worker, AREA_SHMEM);
}

static bool write_shmem(struct worker *worker)
{
	return write_span(worker, AREA_SHMEM);
}

static bool read_disk(struct worker *worker)
{
	return read_span(worker, AREA_DISK);
}

static bool write_disk(struct worker *worker)
{
	return write_span(worker, AREA_DISK);
}

const struct stressor readfile_stressor = {
	.name = "readfile", .prepare = prepare_shmem, .run_once = read_shmem,
};
const struct stressor writefile_stressor = {
	.name = "writefile", .prepare = prepare_shmem, .run_once = write_shmem,
};
const struct stressor readdisk_stressor = {
	.name = "readdisk", .prepare = prepare_disk, .run_once = read_disk,
};
const struct stressor writedisk_stressor = {
	.name = "writedisk", .prepare = prepare_disk, .run_once = write_disk,
};
