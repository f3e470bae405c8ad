// SPDX-License-Identifier: GPL-2.0
/* Large folios: collapse and split. */
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
#define BLOCK_PAGES (FOLIO_ALIGN / PAGE_BYTES)
#define KHUGEPAGED THP_DIR "/khugepaged/"
#define COLLAPSE_TRIES 300

static uint64_t splits_before;

static void fixture_setup_collapse(struct fixture *fx)
{
	/* The pages must not be THP before the collapse, but MADV_NOHUGEPAGE would forbid MADV_COLLAPSE, too. */
	if (!sysfs_set_until_exit(THP_DIR "/enabled", "madvise"))
		test_skip(fx, "no THP (CONFIG_TRANSPARENT_HUGEPAGE)");
	fx->base = folio_reserve(FOLIO_ALIGN);
}

static void setup_collapse(struct fixture *fx)
{
	fixture_remap_anon(fx, MADV_NORMAL);
	setup_forked(fx);
}

static bool trigger_collapse(struct fixture *fx)
{
	bool done = !madvise(fx->base, fixture_bytes(fx), MADV_COLLAPSE);

	trigger_store(fx);
	return done;
}

/* khugepaged looks at whole 2-MiB ranges of one mapping, most of which has no page here. */
static void fixture_setup_khugepaged(struct fixture *fx)
{
	fixture_setup_folio(fx);
	fx->step = PAGE_BYTES;
	if (!sysfs_set_until_exit(KHUGEPAGED "scan_sleep_millisecs", "0") ||
	    !sysfs_set_until_exit(KHUGEPAGED "alloc_sleep_millisecs", "0") ||
	    !sysfs_set_until_exit(KHUGEPAGED "max_ptes_none", "0"))
		test_skip(fx, "no khugepaged");
}

static void setup_khugepaged(struct fixture *fx)
{
	size_t pages = fx->pages;

	fx->pages = BLOCK_PAGES;
	fixture_remap_anon(fx, MADV_NOHUGEPAGE);
	fx->pages = pages;
	setup_forked(fx);
}

static bool trigger_khugepaged(struct fixture *fx)
{
	bool done = false;

	madvise(fx->base, FOLIO_ALIGN, MADV_HUGEPAGE);
	for (int try = 0; try < COLLAPSE_TRIES && !done; try++) {
		sleep_ns(10000000);
		done = folio_census(fx->base, FOLIO_BYTES, FOLIO_BYTES).exact == 1;
	}
	trigger_store(fx);
	return done;
}

static void fixture_setup_split(struct fixture *fx)
{
	mount_debugfs();
	if (access(THP_SPLIT_FILE, W_OK))
		test_skip(fx, "no %s", THP_SPLIT_FILE);
	fixture_setup_folio(fx);
}

static void setup_split(struct fixture *fx)
{
	setup_folio(fx);
	fixture_fork_and_reap(fx);
	splits_before = sysfs_number(SPLITS);
}

static bool trigger_split(struct fixture *fx)
{
	char range[96];

	snprintf(range, sizeof(range), "%d,0x%" PRIxPTR ",0x%" PRIxPTR, (int)getpid(), (uintptr_t)fx->base,
		 (uintptr_t)fx->base + FOLIO_BYTES);
	if (!sysfs_write(THP_SPLIT_FILE, range))
		test_error(fx, "%s: %s", THP_SPLIT_FILE, strerror(errno));
	trigger_store(fx);
	return sysfs_number(SPLITS) > splits_before;
}

const struct test large_tests[] = {
	{
		.name = "thp_collapse", .description = "MADV_COLLAPSE, then stores",
		.machine = true, .pages = BLOCK_PAGES, .expect = EXPECT_NEW, .min_deferred = 50, .min_triggered = 50,
		.fixture_setup = fixture_setup_collapse, .setup = setup_collapse, .trigger = trigger_collapse,
	}, {
		.name = "mthp_collapse", .description = "khugepaged makes a 64-KiB folio of the pages, then stores",
		.machine = true, .pages = FOLIO_PAGES, .expect = EXPECT_NEW,
		.min_deferred = 50, .min_triggered = 50,
		.fixture_setup = fixture_setup_khugepaged, .setup = setup_khugepaged, .trigger = trigger_khugepaged,
	}, {
		.name = "thp_split", .description = "a 64-KiB folio is split, then stores",
		.machine = true, .pages = FOLIO_PAGES, .expect = EXPECT_NEW, .min_deferred = 50, .min_triggered = 50,
		.fixture_setup = fixture_setup_split, .setup = setup_split, .trigger = trigger_split,
	},
	{ 0 }
};
