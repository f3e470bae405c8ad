// SPDX-License-Identifier: GPL-2.0
/*
 * Read and write the file behind a shared mapping with pread(2) and pwrite(2), in memory (memfd)
 * and on disk, where pages are also written back and dropped, so that a lost dirty bit shows.
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

static const char *prepare(struct arena *arena, unsigned int trait, const char *reason)
{
	for (size_t i = 0; i < arena->count; i++)
		if (arena->areas[i].traits & trait)
			return NULL;
	return reason;
}

static const char *prepare_shmem(struct arena *arena)
{
	return prepare(arena, AREA_SHMEM, "no memfd");
}

static const char *prepare_disk(struct arena *arena)
{
	return prepare(arena, AREA_DISK, "no --file DIR");
}

/* Clean pages leave the page cache; those that others use stay, and that is as good. */
static void drop(const struct span *span)
{
	sync_file_range(span->area->fd, offset(span), span_bytes(span),
			SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
	posix_fadvise(span->area->fd, offset(span), span_bytes(span), POSIX_FADV_DONTNEED);
}

static bool read_span(struct actor *actor, unsigned int trait, const char *by)
{
	struct span span;
	bool done;

	if (!span_pick_claimed(actor, &span, trait, 0, SPAN_PAGES))
		return false;
	done = pread(span.area->fd, actor->scratch, span_bytes(&span), offset(&span)) ==
	       (ssize_t)span_bytes(&span);
	if (done)
		span_check_copy(&span, actor->scratch, by);
	else
		report_broken(span.arena, by, "pread: %m");
	span_release(&span);
	return done;
}

static bool write_span(struct actor *actor, unsigned int trait, const char *by)
{
	struct span span;
	bool done;

	if (!span_pick_claimed(actor, &span, trait, 0, SPAN_PAGES))
		return false;
	span_draw(&span, actor->scratch, 1);
	done = pwrite(span.area->fd, actor->scratch, span_bytes(&span), offset(&span)) ==
	       (ssize_t)span_bytes(&span);
	if (done) {
		span_advance(&span);
		if (trait & AREA_DISK && !actor_random(actor, 8))
			drop(&span);
		span_check(&span, by);
	} else {
		report_broken(span.arena, by, "pwrite: %m");
	}
	span_release(&span);
	return done;
}

static bool read_shmem(struct actor *actor)
{
	return read_span(actor, AREA_SHMEM, "readfile");
}

static bool write_shmem(struct actor *actor)
{
	return write_span(actor, AREA_SHMEM, "writefile");
}

static bool read_disk(struct actor *actor)
{
	return read_span(actor, AREA_DISK, "readdisk");
}

static bool write_disk(struct actor *actor)
{
	return write_span(actor, AREA_DISK, "writedisk");
}

const struct antagonist readfile_antagonist = {
	.name = "readfile", .prepare = prepare_shmem, .act = read_shmem,
};
const struct antagonist writefile_antagonist = {
	.name = "writefile", .prepare = prepare_shmem, .act = write_shmem,
};
const struct antagonist readdisk_antagonist = {
	.name = "readdisk", .prepare = prepare_disk, .act = read_disk,
};
const struct antagonist writedisk_antagonist = {
	.name = "writedisk", .prepare = prepare_disk, .act = write_disk,
};
