// SPDX-License-Identifier: GPL-2.0
/* What a process does to its own pages through userfaultfd: write-protect them, move them to another address. */
#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util.h"

#ifndef UFFDIO_MOVE
struct uffdio_move {
	__u64 dst, src, len, mode;
	__s64 move;
};
#define UFFDIO_MOVE _IOWR(UFFDIO, 0x05, struct uffdio_move)
#endif

#define MOVE_TRIES 100

static int uffd = -1;
static char *elsewhere;

static size_t bytes_of(const struct fixture *fx)
{
	return fx->pages * PAGE_BYTES;
}

static bool write_protect(struct fixture *fx, bool protect)
{
	struct uffdio_writeprotect asked = {
		.range = { .start = (uintptr_t)fx->base, .len = bytes_of(fx) },
		.mode = protect ? UFFDIO_WRITEPROTECT_MODE_WP : 0,
	};

	return !ioctl(uffd, UFFDIO_WRITEPROTECT, &asked);
}

static bool watch(struct fixture *fx, char *base)
{
	struct uffdio_register asked = {
		.range = { .start = (uintptr_t)base, .len = bytes_of(fx) }, .mode = UFFDIO_REGISTER_MODE_WP,
	};

	return !ioctl(uffd, UFFDIO_REGISTER, &asked);
}

static void fixture_setup_uffd(struct fixture *fx)
{
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP };

	fixture_map_anon(fx, fx->pages);
	write_pages(fx->base, fx->pages, 0);
	uffd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api) || !watch(fx, fx->base))
		test_skip(fx, "no write protection by userfaultfd (CONFIG_USERFAULTFD): %s", strerror(errno));
}

static bool move_away(struct fixture *fx)
{
	struct uffdio_move asked = {
		.dst = (uintptr_t)elsewhere, .src = (uintptr_t)fx->base, .len = bytes_of(fx),
	};

	for (int try = 0; try < MOVE_TRIES && asked.len; try++) {
		asked.move = 0;
		if (ioctl(uffd, UFFDIO_MOVE, &asked) && errno != EAGAIN)
			break;
		if (asked.move <= 0)
			continue;
		asked.dst += asked.move;
		asked.src += asked.move;
		asked.len -= asked.move;
	}
	return !asked.len;
}

static void fixture_setup_move(struct fixture *fx)
{
	elsewhere = fixture_map_anon(fx, fx->pages);
	fixture_setup_uffd(fx);
	if (!watch(fx, elsewhere))
		die(EXIT_FAILED, "UFFDIO_REGISTER: %m");
	if (!move_away(fx))
		test_skip(fx, "no moving by userfaultfd: %s", strerror(errno));
}

/* Mapped read-only, and nobody else's. */
static void setup_pages(struct fixture *fx)
{
	if (elsewhere)
		madvise(elsewhere, bytes_of(fx), MADV_DONTNEED);
	write_pages(fx->base, fx->pages, fx->old);
	if (!write_protect(fx, true))
		test_error(fx, "UFFDIO_WRITEPROTECT: %s", strerror(errno));
}

static bool trigger_wp(struct fixture *fx)
{
	if (!write_protect(fx, false)) {
		test_error(fx, "UFFDIO_WRITEPROTECT: %s", strerror(errno));
		return false;
	}
	write_pages(fx->base, fx->pages, fx->new);
	return true;
}

/* They become writable there at once; nobody may read them here meanwhile, nor afterwards. */
static bool trigger_move(struct fixture *fx)
{
	bool done = move_away(fx);

	write_pages(elsewhere, fx->pages, fx->new);
	return done;
}

static void fixture_teardown_uffd(struct fixture *fx)
{
	(void)fx;
	close(uffd);
}

const struct test uffd_tests[] = {
	{
		.name = "uffd_wp", .description = "write protection by userfaultfd lifted, then stores",
		.expect = EXPECT_NEW, .min_deferred = 50, .min_triggered = 50, .in_place = true,
		.fixture_setup = fixture_setup_uffd, .fixture_teardown = fixture_teardown_uffd,
		.setup = setup_pages, .trigger = trigger_wp,
	}, {
		.name = "uffd_move", .description = "moved to another address by userfaultfd, and written there",
		.expect = EXPECT_ZERO, .min_deferred = 50, .min_triggered = 50,
		.fixture_setup = fixture_setup_move, .fixture_teardown = fixture_teardown_uffd,
		.setup = setup_pages, .trigger = trigger_move,
	},
	{ 0 }
};
