// SPDX-License-Identifier: GPL-2.0
/* Pages that the kernel merges with their twins, or write-protects for userfaultfd. */
#include "bed.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kernel-page-flags.h>
#include <linux/userfaultfd.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "folio.h"
#include "stamp.h"
#include "sysfile.h"

#define KSM_DIR "/sys/kernel/mm/ksm/"
#define MERGE_NS UINT64_C(5000000000)
#define STEP_NS 10000000

static char *twins;
static int uffd = -1;

static size_t bytes_of(const struct bed *bed)
{
	return bed->pages * PAGE_BYTES;
}

static void open_ksm(struct bed *bed)
{
	twins = bed_map_anon(bed, bed->pages);
	bed_map_anon(bed, bed->pages);
	if (!sysfile_set_until_exit(KSM_DIR "pages_to_scan", "2000") ||
	    !sysfile_set_until_exit(KSM_DIR "sleep_millisecs", "10") || !sysfile_set_until_exit(KSM_DIR "run", "0"))
		bed_skip(bed, "no KSM (CONFIG_KSM)");
}

static void advise(struct bed *bed, int advice)
{
	if (madvise(bed->base, bytes_of(bed), advice) || madvise(twins, bytes_of(bed), advice))
		bed_broken(bed, "madvise: %s", strerror(errno));
}

static void arrange_ksm(struct bed *bed)
{
	sysfile_write(KSM_DIR "run", "0");
	advise(bed, MADV_UNMERGEABLE);
	bed_write(bed->base, bed->pages, bed->old);
	bed_write(twins, bed->pages, bed->old);
	advise(bed, MADV_MERGEABLE);
	bed_fork_once(bed);
}

/* By the page itself: the kernel's counters hold what is no more until ksmd comes by. */
static bool merged(const struct bed *bed)
{
	return folio_flags(bed->base) & UINT64_C(1) << KPF_KSM;
}

static bool act_ksm(struct bed *bed)
{
	uint64_t start = clock_ns();
	bool done;

	sysfile_write(KSM_DIR "run", "1");
	while (!(done = merged(bed)) && clock_ns() - start < MERGE_NS)
		sleep_ns(STEP_NS);
	bed_judge(bed, SEES_OLD);
	bed_write(bed->base, bed->pages, bed->fresh);
	return done;
}

static void close_ksm(struct bed *bed)
{
	advise(bed, MADV_UNMERGEABLE);
}

static bool write_protect(struct bed *bed, bool protect)
{
	struct uffdio_writeprotect asked = {
		.range = { .start = (uintptr_t)bed->base, .len = bytes_of(bed) },
		.mode = protect ? UFFDIO_WRITEPROTECT_MODE_WP : 0,
	};

	return !ioctl(uffd, UFFDIO_WRITEPROTECT, &asked);
}

static void open_uffd(struct bed *bed)
{
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_WP };

	bed_map_anon(bed, bed->pages);
	bed_write(bed->base, bed->pages, 0);
	uffd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	range.range.start = (uintptr_t)bed->base;
	range.range.len = bytes_of(bed);
	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api) || ioctl(uffd, UFFDIO_REGISTER, &range))
		bed_skip(bed, "no write protection by userfaultfd (CONFIG_USERFAULTFD): %s", strerror(errno));
}

static void arrange_uffd(struct bed *bed)
{
	bed_write(bed->base, bed->pages, bed->old);
	if (!write_protect(bed, true))
		bed_broken(bed, "UFFDIO_WRITEPROTECT: %s", strerror(errno));
}

static bool act_uffd(struct bed *bed)
{
	if (!write_protect(bed, false)) {
		bed_broken(bed, "UFFDIO_WRITEPROTECT: %s", strerror(errno));
		return false;
	}
	bed_write(bed->base, bed->pages, bed->fresh);
	return true;
}

static void close_uffd(struct bed *bed)
{
	(void)bed;
	close(uffd);
}

const struct event merge_events[] = {
	{
		.name = "ksm", .what = "merged with their twins after the move, then written",
		.machine = true,
		.sees = SEES_NEW, .deferred = 50, .acted = 50,
		.open = open_ksm, .arrange = arrange_ksm, .act = act_ksm, .close = close_ksm,
	}, {
		.name = "uffd_wp", .what = "write protection by userfaultfd lifted, then stores",
		.sees = SEES_NEW, .deferred = 50, .acted = 50, .in_place = true,
		.open = open_uffd, .arrange = arrange_uffd, .act = act_uffd, .close = close_uffd,
	},
	{ 0 }
};
