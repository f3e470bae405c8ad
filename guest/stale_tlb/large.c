// SPDX-License-Identifier: GPL-2.0
/* Large folios: made, and taken apart. */
#include "fixture.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "folio.h"
#include "sysfs.h"
#include "util.h"

#define SPLITS THP_DIR "/hugepages-64kB/stats/split"
#define FOLIO_BYTES ((size_t)64 * 1024)
#define FOLIO_PAGES (FOLIO_BYTES / PAGE_BYTES)
#define BLOCK_PAGES (FOLIO_ALIGN / PAGE_BYTES)

static uint64_t before;

static void map_anew(struct fixture *fx, int advice)
{
	if (mmap(fx->base, fx->pages * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		 -1, 0) == MAP_FAILED)
		die(EXIT_FAILED, "no memory: %m");
	if (advice)
		madvise(fx->base, fx->pages * PAGE_BYTES, advice);
	write_pages(fx->base, fx->pages, fx->old);
}

static void fixture_setup_collapse(struct fixture *fx)
{
	/* No THP without advice; MADV_NOHUGEPAGE would forbid MADV_COLLAPSE too. */
	if (!sysfs_set_until_exit(THP_DIR "/enabled", "madvise"))
		test_skip(fx, "no THP (CONFIG_TRANSPARENT_HUGEPAGE)");
	fx->base = folio_reserve(FOLIO_ALIGN);
}

static void setup_collapse(struct fixture *fx)
{
	map_anew(fx, 0);
	fixture_fork_and_reap(fx);
}

static bool trigger_collapse(struct fixture *fx)
{
	bool done = !madvise(fx->base, fx->pages * PAGE_BYTES, MADV_COLLAPSE);

	write_pages(fx->base, fx->pages, fx->new);
	return done;
}

static void fixture_setup_folio(struct fixture *fx)
{
	if (!thp_allow_only(FOLIO_BYTES, false))
		test_skip(fx, "no folios of 64 KiB (CONFIG_TRANSPARENT_HUGEPAGE)");
	mount_debugfs();
	fx->base = folio_reserve(FOLIO_ALIGN);
	fx->step = FOLIO_BYTES;
}

static void make_folio(struct fixture *fx)
{
	map_anew(fx, MADV_HUGEPAGE);
	if (folio_census(fx->base, FOLIO_BYTES, FOLIO_BYTES).exact != 1)
		test_error(fx, "this is no folio of 64 KiB");
	fixture_fork_and_reap(fx);
}

static void setup_split(struct fixture *fx)
{
	if (access(THP_SPLIT_FILE, W_OK))
		test_skip(fx, "no %s", THP_SPLIT_FILE);
	make_folio(fx);
	before = sysfs_number(SPLITS);
}

static bool trigger_split(struct fixture *fx)
{
	char range[96];

	snprintf(range, sizeof(range), "%d,0x%" PRIxPTR ",0x%" PRIxPTR, (int)getpid(), (uintptr_t)fx->base,
		 (uintptr_t)fx->base + FOLIO_BYTES);
	if (!sysfs_write(THP_SPLIT_FILE, range))
		test_error(fx, "%s: %s", THP_SPLIT_FILE, strerror(errno));
	write_pages(fx->base, fx->pages, fx->new);
	return sysfs_number(SPLITS) > before;
}

const struct test large_tests[] = {
	{
		.name = "thp_collapse", .description = "MADV_COLLAPSE, then stores",
		.machine = true, .pages = BLOCK_PAGES, .expect = EXPECT_NEW, .min_deferred = 50, .min_triggered = 50,
		.fixture_setup = fixture_setup_collapse, .setup = setup_collapse, .trigger = trigger_collapse,
	}, {
		.name = "thp_split", .description = "a folio of 64 KiB split, then stores",
		.machine = true, .pages = FOLIO_PAGES, .expect = EXPECT_NEW, .min_deferred = 50, .min_triggered = 50,
		.fixture_setup = fixture_setup_folio, .setup = setup_split, .trigger = trigger_split,
	},
	{ 0 }
};
