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

static size_t bytes_of(const struct bed *bed)
{
	return bed->pages * PAGE_BYTES;
}

static bool write_protect(struct bed *bed, bool protect)
{
	struct uffdio_writeprotect asked = {
		.range = { .start = (uintptr_t)bed->base, .len = bytes_of(bed) },
		.mode = protect ? UFFDIO_WRITEPROTECT_MODE_WP : 0,
	};

	return !ioctl(uffd, UFFDIO_WRITEPROTECT, &asked);
}

static bool watch(struct bed *bed, char *base)
{
	struct uffdio_register asked = {
		.range = { .start = (uintptr_t)base, .len = bytes_of(bed) }, .mode = UFFDIO_REGISTER_MODE_WP,
	};

	return !ioctl(uffd, UFFDIO_REGISTER, &asked);
}

static void open_uffd(struct bed *bed)
{
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP };

	bed_map_anon(bed, bed->pages);
	bed_write(bed->base, bed->pages, 0);
	uffd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api) || !watch(bed, bed->base))
		bed_skip(bed, "no write protection by userfaultfd (CONFIG_USERFAULTFD): %s", strerror(errno));
}

static bool move_away(struct bed *bed)
{
	struct uffdio_move asked = {
		.dst = (uintptr_t)elsewhere, .src = (uintptr_t)bed->base, .len = bytes_of(bed),
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

static void open_move(struct bed *bed)
{
	elsewhere = bed_map_anon(bed, bed->pages);
	open_uffd(bed);
	if (!watch(bed, elsewhere))
		die(EXIT_FAILED, "UFFDIO_REGISTER: %m");
	if (!move_away(bed))
		bed_skip(bed, "no moving by userfaultfd: %s", strerror(errno));
}

/* Mapped read-only, and nobody else's. */
static void arrange(struct bed *bed)
{
	if (elsewhere)
		madvise(elsewhere, bytes_of(bed), MADV_DONTNEED);
	bed_write(bed->base, bed->pages, bed->old);
	if (!write_protect(bed, true))
		bed_broken(bed, "UFFDIO_WRITEPROTECT: %s", strerror(errno));
}

static bool act_wp(struct bed *bed)
{
	if (!write_protect(bed, false)) {
		bed_broken(bed, "UFFDIO_WRITEPROTECT: %s", strerror(errno));
		return false;
	}
	bed_write(bed->base, bed->pages, bed->fresh);
	return true;
}

/* They become writable there at once; nobody may read them here meanwhile, nor afterwards. */
static bool act_move(struct bed *bed)
{
	bool done = move_away(bed);

	bed_write(elsewhere, bed->pages, bed->fresh);
	return done;
}

static void close_uffd(struct bed *bed)
{
	(void)bed;
	close(uffd);
}

const struct event uffd_events[] = {
	{
		.name = "uffd_wp", .what = "write protection by userfaultfd lifted, then stores",
		.sees = SEES_NEW, .deferred = 50, .acted = 50, .in_place = true,
		.open = open_uffd, .arrange = arrange, .act = act_wp, .close = close_uffd,
	}, {
		.name = "uffd_move", .what = "moved to another address by userfaultfd, and written there",
		.sees = SEES_ZERO, .deferred = 50, .acted = 50,
		.open = open_move, .arrange = arrange, .act = act_move, .close = close_uffd,
	},
	{ 0 }
};
