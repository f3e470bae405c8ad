// SPDX-License-Identifier: GPL-2.0
/* userfaultfd: a process write-protects its own pages, or moves them to another address. */
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
static char *move_target;

static bool write_protect(struct fixture *fx, bool protect)
{
	struct uffdio_writeprotect args = {
		.range = { .start = (uintptr_t)fx->base, .len = fixture_bytes(fx) },
		.mode = protect ? UFFDIO_WRITEPROTECT_MODE_WP : 0,
	};

	return !ioctl(uffd, UFFDIO_WRITEPROTECT, &args);
}

static bool register_wp(struct fixture *fx, char *base)
{
	struct uffdio_register args = {
		.range = { .start = (uintptr_t)base, .len = fixture_bytes(fx) }, .mode = UFFDIO_REGISTER_MODE_WP,
	};

	return !ioctl(uffd, UFFDIO_REGISTER, &args);
}

static void fixture_setup_uffd(struct fixture *fx)
{
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP };

	fixture_map_anon(fx, fx->pages);
	write_pages(fx->base, fx->pages, 0);
	uffd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api) || !register_wp(fx, fx->base))
		test_skip(fx, "no write protection by userfaultfd (CONFIG_USERFAULTFD): %s", strerror(errno));
}

static bool move_away(struct fixture *fx)
{
	struct uffdio_move args = {
		.dst = (uintptr_t)move_target, .src = (uintptr_t)fx->base, .len = fixture_bytes(fx),
	};

	for (int try = 0; try < MOVE_TRIES && args.len; try++) {
		args.move = 0;
		if (ioctl(uffd, UFFDIO_MOVE, &args) && errno != EAGAIN)
			break;
		if (args.move <= 0)
			continue;
		args.dst += args.move;
		args.src += args.move;
		args.len -= args.move;
	}
	return !args.len;
}

static void fixture_setup_move(struct fixture *fx)
{
	move_target = fixture_map_anon(fx, fx->pages);
	fixture_setup_uffd(fx);
	if (!register_wp(fx, move_target))
		die(EXIT_FAILED, "UFFDIO_REGISTER: %m");
	if (!move_away(fx))
		test_skip(fx, "no UFFDIO_MOVE: %s", strerror(errno));
}

/* Write-protect the pages, which stay exclusive. */
static void setup_uffd(struct fixture *fx)
{
	if (move_target)
		madvise(move_target, fixture_bytes(fx), MADV_DONTNEED);
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
	return trigger_store(fx);
}

/* The pages become writable at the new address; no CPU may read them at the old one during that or later. */
static bool trigger_move(struct fixture *fx)
{
	bool done = move_away(fx);

	write_pages(move_target, fx->pages, fx->new);
	return done;
}

static void fixture_teardown_uffd(struct fixture *fx)
{
	(void)fx;
	close(uffd);
}

const struct test uffd_tests[] = {
	{
		.name = "uffd_wp", .description = "userfaultfd lifts its write protection, then stores",
		.expect = EXPECT_NEW, .min_deferred = 50, .min_triggered = 50, .in_place = true,
		.fixture_setup = fixture_setup_uffd, .fixture_teardown = fixture_teardown_uffd,
		.setup = setup_uffd, .trigger = trigger_wp,
	}, {
		.name = "uffd_move", .description = "userfaultfd moves the pages to another address, then stores there",
		.expect = EXPECT_ZERO, .min_deferred = 50, .min_triggered = 50,
		.fixture_setup = fixture_setup_move, .fixture_teardown = fixture_teardown_uffd,
		.setup = setup_uffd, .trigger = trigger_move,
	},
	{ 0 }
};
