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

static size_t bytes_of(const struct fixture *fx)
{
	return fx->pages * PAGE_BYTES;
}

static bool put_words(int fd, const struct fixture *fx, uint64_t value)
{
	for (size_t i = 0; i < fx->pages; i++) {
		uint64_t written = page_word(value, i);

		if (pwrite(fd, &written, sizeof(written), i * PAGE_BYTES) != sizeof(written))
			return false;
	}
	/* Dirty pages of a disk move too, but not all at once. */
	return !fsync(fd);
}

static bool fill(const char *name, const struct fixture *fx, uint64_t value)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	bool done = fd >= 0 && !ftruncate(fd, bytes_of(fx)) && put_words(fd, fx, value);

	if (fd >= 0)
		close(fd);
	return done;
}

bool file_write(struct fixture *fx, uint64_t value)
{
	bool done = fill(path, fx, value);

	if (!done)
		test_error(fx, "%s: %s", path, strerror(errno));
	return done;
}

static void require_kind(struct fixture *fx)
{
	struct statfs about;

	if (statfs(fx->options->dir, &about))
		test_skip(fx, "%s: %s", fx->options->dir, strerror(errno));
	if (about.f_type != TMPFS_MAGIC && about.f_type != EXT4_SUPER_MAGIC)
		test_skip(fx, "%s is neither on tmpfs nor on ext4", fx->options->dir);
}

void file_fixture_setup(struct fixture *fx)
{
	require_kind(fx);
	snprintf(path, sizeof(path), "%s/stale_tlb-%d", fx->options->dir, (int)getpid());
	snprintf(source_path, sizeof(source_path), "%s/stale_tlb-%d.new", fx->options->dir, (int)getpid());
	if (!fill(path, fx, 0))
		die(EXIT_FAILED, "%s: %m", path);
	reading = open(path, O_RDONLY | O_CLOEXEC);
	fx->base = mmap(NULL, bytes_of(fx), PROT_READ, MAP_SHARED, reading, 0);
	if (fx->base == MAP_FAILED)
		die(EXIT_FAILED, "%s: %m", path);
}

void file_fixture_teardown(struct fixture *fx)
{
	munmap(fx->base, bytes_of(fx));
	close(reading);
	unlink(path);
	unlink(source_path);
}

void file_setup(struct fixture *fx)
{
	file_write(fx, fx->old);
}

static bool trigger_write(struct fixture *fx)
{
	return file_write(fx, fx->new);
}

static void setup_open_already(struct fixture *fx)
{
	file_setup(fx);
	writing = open(path, O_WRONLY | O_CLOEXEC);
	refused = migrc_number("counters/skipped_file");
}

static bool trigger_open_already(struct fixture *fx)
{
	bool done = put_words(writing, fx, fx->new);

	close(writing);
	return done && (fx->options->off || migrc_number("counters/skipped_file") > refused);
}

static bool trigger_truncate(struct fixture *fx)
{
	return !truncate(path, 0) && !truncate(path, bytes_of(fx));
}

static bool trigger_punch(struct fixture *fx)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 && !fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, bytes_of(fx));

	close(fd);
	return done;
}

static bool trigger_mmap_write(struct fixture *fx)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	char *shared = mmap(NULL, bytes_of(fx), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	bool mapped = shared != MAP_FAILED;

	if (mapped) {
		write_pages(shared, fx->pages, fx->new);
		/* While it is mapped: to unmap anything flushes the whole space. */
		fixture_check(fx, EXPECT_NEW);
		munmap(shared, bytes_of(fx));
	}
	close(fd);
	return mapped;
}

static void setup_copy(struct fixture *fx)
{
	if (!fill(source_path, fx, fx->new))
		test_error(fx, "%s: %s", source_path, strerror(errno));
	file_setup(fx);
}

static bool trigger_copy(struct fixture *fx)
{
	int from = open(source_path, O_RDONLY | O_CLOEXEC), to = open(path, O_WRONLY | O_CLOEXEC);
	size_t left = bytes_of(fx);
	ssize_t done = 1;

	while (left && done > 0) {
		done = copy_file_range(from, NULL, to, NULL, left, 0);
		left -= done > 0 ? done : 0;
	}
	close(from);
	close(to);
	return !left;
}

const struct test file_tests[] = {
	{
		.name = "file_write", .description = "a file opened for writing, and written",
		.expect = EXPECT_NEW, .min_deferred = 50, .min_triggered = 50,
		.fixture_setup = file_fixture_setup, .fixture_teardown = file_fixture_teardown,
		.setup = file_setup, .trigger = trigger_write,
	}, {
		.name = "file_open_already", .description = "a file that was open for writing before it moved",
		.expect = EXPECT_NEW, .min_triggered = 50, .never_deferred = true,
		.fixture_setup = file_fixture_setup, .fixture_teardown = file_fixture_teardown,
		.setup = setup_open_already, .trigger = trigger_open_already,
	}, {
		.name = "file_truncate", .description = "truncate(2) to nothing and back",
		.expect = EXPECT_ZERO | EXPECT_FAULT, .min_deferred = 50, .min_triggered = 50,
		.fixture_setup = file_fixture_setup, .fixture_teardown = file_fixture_teardown,
		.setup = file_setup, .trigger = trigger_truncate,
	}, {
		.name = "file_punch", .description = "a hole punched",
		.expect = EXPECT_ZERO, .min_deferred = 50, .min_triggered = 50,
		.fixture_setup = file_fixture_setup, .fixture_teardown = file_fixture_teardown,
		.setup = file_setup, .trigger = trigger_punch,
	}, {
		.name = "file_mmap_write", .description = "a file mapped writable elsewhere, and written there",
		.expect = EXPECT_NEW, .min_deferred = 50, .min_triggered = 50,
		.fixture_setup = file_fixture_setup, .fixture_teardown = file_fixture_teardown,
		.setup = file_setup, .trigger = trigger_mmap_write,
	}, {
		.name = "file_copy_range", .description = "copy_file_range(2) into the file",
		.expect = EXPECT_NEW, .min_deferred = 50, .min_triggered = 50,
		.fixture_setup = file_fixture_setup, .fixture_teardown = file_fixture_teardown,
		.setup = setup_copy, .trigger = trigger_copy,
	},
	{ 0 }
};
