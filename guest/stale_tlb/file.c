// SPDX-License-Identifier: GPL-2.0
/* Pages of a file, mapped through a read-only descriptor and changed through one that is open for writing. */
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

static char path[256], new_path[sizeof(path)];
static int read_fd = -1, write_fd = -1;
static uint64_t skipped_before;

static bool write_words(int fd, const struct fixture *fx, uint64_t value)
{
	for (size_t i = 0; i < fx->pages; i++) {
		uint64_t written = page_word(value, i);

		if (pwrite(fd, &written, sizeof(written), i * PAGE_BYTES) != sizeof(written))
			return false;
	}
	/* Clean the pages: dirty pages of a disk file migrate, too, but not all in one move. */
	return !fsync(fd);
}

static bool write_file(const char *name, const struct fixture *fx, uint64_t value)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	bool done = fd >= 0 && !ftruncate(fd, fixture_bytes(fx)) && write_words(fd, fx, value);

	if (fd >= 0)
		close(fd);
	return done;
}

bool file_write(struct fixture *fx, uint64_t value)
{
	bool done = write_file(path, fx, value);

	if (!done)
		test_error(fx, "%s: %s", path, strerror(errno));
	return done;
}

void file_fixture_setup(struct fixture *fx)
{
	struct statfs fs;

	if (statfs(fx->options->dir, &fs))
		test_skip(fx, "%s: %s", fx->options->dir, strerror(errno));
	if (fs.f_type != TMPFS_MAGIC && fs.f_type != EXT4_SUPER_MAGIC)
		test_skip(fx, "%s is neither on tmpfs nor on ext4", fx->options->dir);
	snprintf(path, sizeof(path), "%s/stale_tlb-%d", fx->options->dir, (int)getpid());
	snprintf(new_path, sizeof(new_path), "%s/stale_tlb-%d.new", fx->options->dir, (int)getpid());
	if (!write_file(path, fx, 0))
		die(EXIT_FAILED, "%s: %m", path);
	read_fd = open(path, O_RDONLY | O_CLOEXEC);
	fx->base = mmap(NULL, fixture_bytes(fx), PROT_READ, MAP_SHARED, read_fd, 0);
	if (fx->base == MAP_FAILED)
		die(EXIT_FAILED, "%s: %m", path);
}

void file_fixture_teardown(struct fixture *fx)
{
	munmap(fx->base, fixture_bytes(fx));
	close(read_fd);
	unlink(path);
	unlink(new_path);
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
	write_fd = open(path, O_WRONLY | O_CLOEXEC);
	skipped_before = migrc_number("counters/skipped_file");
}

static bool trigger_open_already(struct fixture *fx)
{
	bool done = write_words(write_fd, fx, fx->new);

	close(write_fd);
	return done && (fx->options->off || migrc_number("counters/skipped_file") > skipped_before);
}

static bool trigger_truncate(struct fixture *fx)
{
	return !truncate(path, 0) && !truncate(path, fixture_bytes(fx));
}

static bool trigger_punch(struct fixture *fx)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 && !fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, fixture_bytes(fx));

	close(fd);
	return done;
}

static bool trigger_mmap_write(struct fixture *fx)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	char *shared = mmap(NULL, fixture_bytes(fx), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	bool mapped = shared != MAP_FAILED;

	if (mapped) {
		write_pages(shared, fx->pages, fx->new);
		/* Check before munmap(), which flushes the whole mm. */
		fixture_check(fx, EXPECT_NEW);
		munmap(shared, fixture_bytes(fx));
	}
	close(fd);
	return mapped;
}

static void setup_copy(struct fixture *fx)
{
	if (!write_file(new_path, fx, fx->new))
		test_error(fx, "%s: %s", new_path, strerror(errno));
	file_setup(fx);
}

static bool trigger_copy(struct fixture *fx)
{
	int from = open(new_path, O_RDONLY | O_CLOEXEC), to = open(path, O_WRONLY | O_CLOEXEC);
	size_t left = fixture_bytes(fx);
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
		.name = "file_write", .description = "a file is opened for writing and written",
		.expect = EXPECT_NEW, .min_deferred = 50, .min_triggered = 50,
		.fixture_setup = file_fixture_setup, .fixture_teardown = file_fixture_teardown,
		.setup = file_setup, .trigger = trigger_write,
	}, {
		.name = "file_open_already", .description = "a file that was opened for writing before the move",
		.expect = EXPECT_NEW, .min_triggered = 50, .never_deferred = true,
		.fixture_setup = file_fixture_setup, .fixture_teardown = file_fixture_teardown,
		.setup = setup_open_already, .trigger = trigger_open_already,
	}, {
		.name = "file_truncate", .description = "truncate(2) to no bytes and back",
		.expect = EXPECT_ZERO | EXPECT_FAULT, .min_deferred = 50, .min_triggered = 50,
		.fixture_setup = file_fixture_setup, .fixture_teardown = file_fixture_teardown,
		.setup = file_setup, .trigger = trigger_truncate,
	}, {
		.name = "file_punch", .description = "fallocate(2) punches a hole",
		.expect = EXPECT_ZERO, .min_deferred = 50, .min_triggered = 50,
		.fixture_setup = file_fixture_setup, .fixture_teardown = file_fixture_teardown,
		.setup = file_setup, .trigger = trigger_punch,
	}, {
		.name = "file_mmap_write", .description = "a file is mapped writable elsewhere and written there",
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
