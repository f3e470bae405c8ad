// SPDX-License-Identifier: GPL-2.0
/* A file, mapped through a descriptor that cannot write, and changed by someone who opens it for writing. */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "util.h"

static char path[256], source_path[sizeof(path)];
static int reading = -1, writing = -1;
static uint64_t refused;

static size_t bytes_of(const struct bed *bed)
{
	return bed->pages * PAGE_BYTES;
}

static bool put_words(int fd, const struct bed *bed, uint64_t value)
{
	for (size_t i = 0; i < bed->pages; i++) {
		uint64_t written = word(value, i);

		if (pwrite(fd, &written, sizeof(written), i * PAGE_BYTES) != sizeof(written))
			return false;
	}
	/* Dirty pages of a disk move too, but not all at once. */
	return !fsync(fd);
}

static bool fill(const char *name, const struct bed *bed, uint64_t value)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	bool done = fd >= 0 && !ftruncate(fd, bytes_of(bed)) && put_words(fd, bed, value);

	if (fd >= 0)
		close(fd);
	return done;
}

bool file_write(struct bed *bed, uint64_t value)
{
	bool done = fill(path, bed, value);

	if (!done)
		bed_broken(bed, "%s: %s", path, strerror(errno));
	return done;
}

static void require_kind(struct bed *bed)
{
	struct statfs about;

	if (statfs(bed->options->dir, &about))
		bed_skip(bed, "%s: %s", bed->options->dir, strerror(errno));
	if (about.f_type != TMPFS_MAGIC && about.f_type != EXT4_SUPER_MAGIC)
		bed_skip(bed, "%s is neither on tmpfs nor on ext4", bed->options->dir);
}

void file_open(struct bed *bed)
{
	require_kind(bed);
	snprintf(path, sizeof(path), "%s/litmus-%d", bed->options->dir, (int)getpid());
	snprintf(source_path, sizeof(source_path), "%s/litmus-%d.new", bed->options->dir, (int)getpid());
	if (!fill(path, bed, 0))
		die(EXIT_FAILED, "%s: %m", path);
	reading = open(path, O_RDONLY | O_CLOEXEC);
	bed->base = mmap(NULL, bytes_of(bed), PROT_READ, MAP_SHARED, reading, 0);
	if (bed->base == MAP_FAILED)
		die(EXIT_FAILED, "%s: %m", path);
}

void file_close(struct bed *bed)
{
	munmap(bed->base, bytes_of(bed));
	close(reading);
	unlink(path);
	unlink(source_path);
}

void file_arrange(struct bed *bed)
{
	file_write(bed, bed->old);
}

static bool act_write(struct bed *bed)
{
	return file_write(bed, bed->fresh);
}

static void arrange_open_already(struct bed *bed)
{
	file_arrange(bed);
	writing = open(path, O_WRONLY | O_CLOEXEC);
	refused = migrc_number("counters/skipped_file");
}

static bool act_open_already(struct bed *bed)
{
	bool done = put_words(writing, bed, bed->fresh);

	close(writing);
	return done && (bed->options->off || migrc_number("counters/skipped_file") > refused);
}

static bool act_truncate(struct bed *bed)
{
	return !truncate(path, 0) && !truncate(path, bytes_of(bed));
}

static bool act_punch(struct bed *bed)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 && !fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, bytes_of(bed));

	close(fd);
	return done;
}

static bool act_mmap_write(struct bed *bed)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	char *shared = mmap(NULL, bytes_of(bed), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	bool mapped = shared != MAP_FAILED;

	if (mapped) {
		bed_write(shared, bed->pages, bed->fresh);
		/* While it is mapped: to unmap anything flushes the whole space. */
		bed_judge(bed, SEES_NEW);
		munmap(shared, bytes_of(bed));
	}
	close(fd);
	return mapped;
}

static void arrange_copy(struct bed *bed)
{
	if (!fill(source_path, bed, bed->fresh))
		bed_broken(bed, "%s: %s", source_path, strerror(errno));
	file_arrange(bed);
}

static bool act_copy(struct bed *bed)
{
	int from = open(source_path, O_RDONLY | O_CLOEXEC), to = open(path, O_WRONLY | O_CLOEXEC);
	size_t left = bytes_of(bed);
	ssize_t done = 1;

	while (left && done > 0) {
		done = copy_file_range(from, NULL, to, NULL, left, 0);
		left -= done > 0 ? done : 0;
	}
	close(from);
	close(to);
	return !left;
}

const struct event file_events[] = {
	{
		.name = "file_write", .what = "a file opened for writing, and written",
		.sees = SEES_NEW, .deferred = 50, .acted = 50,
		.open = file_open, .arrange = file_arrange, .act = act_write, .close = file_close,
	}, {
		.name = "file_open_already", .what = "a file that was open for writing before it moved",
		.sees = SEES_NEW, .acted = 50, .never_deferred = true,
		.open = file_open, .arrange = arrange_open_already, .act = act_open_already, .close = file_close,
	}, {
		.name = "file_truncate", .what = "truncate(2) to nothing and back",
		.sees = SEES_ZERO | SEES_FAULT, .deferred = 50, .acted = 50,
		.open = file_open, .arrange = file_arrange, .act = act_truncate, .close = file_close,
	}, {
		.name = "file_punch", .what = "a hole punched",
		.sees = SEES_ZERO, .deferred = 50, .acted = 50,
		.open = file_open, .arrange = file_arrange, .act = act_punch, .close = file_close,
	}, {
		.name = "file_mmap_write", .what = "a file mapped writable elsewhere, and written there",
		.sees = SEES_NEW, .deferred = 50, .acted = 50,
		.open = file_open, .arrange = file_arrange, .act = act_mmap_write, .close = file_close,
	}, {
		.name = "file_copy_range", .what = "copy_file_range(2) into the file",
		.sees = SEES_NEW, .deferred = 50, .acted = 50,
		.open = file_open, .arrange = arrange_copy, .act = act_copy, .close = file_close,
	},
	{ 0 }
};
