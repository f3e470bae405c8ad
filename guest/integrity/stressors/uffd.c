// SPDX-License-Identifier: GPL-2.0
/*
 * Make pages inaccessible by userfaultfd's read-write protection. Then a page table has PROT_NONE
 * entries among those that workers write, which mprotect(2) never does, since it splits the VMA. The
 * kernel restores the access at the next use of a page.
 */
#include "stressors.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../span.h"

#ifndef UFFDIO_RWPROTECT
struct uffdio_rwprotect {
	struct uffdio_range range;
	__u64 mode;
};
#define UFFDIO_RWPROTECT _IOWR(UFFDIO, 0x09, struct uffdio_rwprotect)
#define UFFDIO_RWPROTECT_MODE_RWP (1 << 0)
#define UFFDIO_REGISTER_MODE_RWP (1 << 3)
#define UFFD_FEATURE_RWP (1 << 17)
#define UFFD_FEATURE_RWP_ASYNC (1 << 18)
#endif

/* Files on a disk cannot be protected, and KSM merges fewer pages that are. */
#define TRAITS (AREA_ANON | AREA_SHMEM)
#define WITHOUT AREA_MERGEABLE

static int uffd;

static bool register_area(const struct area *area)
{
	struct uffdio_register args = {
		.range = { .start = (uintptr_t)area->base, .len = area->pages * PAGE_BYTES },
		.mode = UFFDIO_REGISTER_MODE_RWP,
	};

	return !ioctl(uffd, UFFDIO_REGISTER, &args);
}

static const char *prepare(struct test_memory *mem)
{
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_RWP | UFFD_FEATURE_RWP_ASYNC };

	uffd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (uffd < 0)
		return "no userfaultfd(2) (CONFIG_USERFAULTFD)";
	if (ioctl(uffd, UFFDIO_API, &api))
		return "no read-write protection by userfaultfd (CONFIG_USERFAULTFD_RWP)";
	for (size_t i = 0; i < mem->count; i++)
		if (mem->areas[i].traits & TRAITS && !(mem->areas[i].traits & WITHOUT) &&
		    !register_area(&mem->areas[i]))
			return "userfaultfd(2) does not take the memory";
	return NULL;
}

static bool run_once(struct worker *worker)
{
	struct uffdio_rwprotect args = { .mode = UFFDIO_RWPROTECT_MODE_RWP };
	struct span span;

	/* Without a claim, because the protection must be invisible to users of the pages. */
	if (!span_pick(worker, &span, TRAITS, WITHOUT, SPAN_PAGES))
		return false;
	args.range = (struct uffdio_range){ .start = (uintptr_t)span_address(&span), .len = span_bytes(&span) };
	return !ioctl(uffd, UFFDIO_RWPROTECT, &args);
}

static void finish(struct test_memory *mem)
{
	(void)mem;
	close(uffd);
}

const struct stressor uffd_stressor = {
	.name = "uffd", .prepare = prepare, .run_once = run_once, .finish = finish, .many = true,
};
