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

static void map_anew(struct bed *bed, int advice)
{
	if (mmap(bed->base, bed->pages * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		 -1, 0) == MAP_FAILED)
		die(EXIT_FAILED, "no memory: %m");
	if (advice)
		madvise(bed->base, bed->pages * PAGE_BYTES, advice);
	bed_write(bed->base, bed->pages, bed->old);
}

static void open_collapse(struct bed *bed)
{
	/* No THP without advice; MADV_NOHUGEPAGE would forbid MADV_COLLAPSE too. */
	if (!sysfs_set_until_exit(THP_DIR "/enabled", "madvise"))
		bed_skip(bed, "no THP (CONFIG_TRANSPARENT_HUGEPAGE)");
	bed->base = folio_reserve(FOLIO_ALIGN);
}

static void arrange_collapse(struct bed *bed)
{
	map_anew(bed, 0);
	bed_fork_once(bed);
}

static bool act_collapse(struct bed *bed)
{
	bool done = !madvise(bed->base, bed->pages * PAGE_BYTES, MADV_COLLAPSE);

	bed_write(bed->base, bed->pages, bed->fresh);
	return done;
}

static void open_folio(struct bed *bed)
{
	if (!thp_allow_only(FOLIO_BYTES, false))
		bed_skip(bed, "no folios of 64 KiB (CONFIG_TRANSPARENT_HUGEPAGE)");
	bed_debugfs();
	bed->base = folio_reserve(FOLIO_ALIGN);
	bed->step = FOLIO_BYTES;
}

static void make_folio(struct bed *bed)
{
	map_anew(bed, MADV_HUGEPAGE);
	if (folio_census(bed->base, FOLIO_BYTES, FOLIO_BYTES).exact != 1)
		bed_broken(bed, "this is no folio of 64 KiB");
	bed_fork_once(bed);
}

static void arrange_split(struct bed *bed)
{
	if (access(THP_SPLIT_FILE, W_OK))
		bed_skip(bed, "no %s", THP_SPLIT_FILE);
	make_folio(bed);
	before = sysfs_number(SPLITS);
}

static bool act_split(struct bed *bed)
{
	char range[96];

	snprintf(range, sizeof(range), "%d,0x%" PRIxPTR ",0x%" PRIxPTR, (int)getpid(), (uintptr_t)bed->base,
		 (uintptr_t)bed->base + FOLIO_BYTES);
	if (!sysfs_write(THP_SPLIT_FILE, range))
		bed_broken(bed, "%s: %s", THP_SPLIT_FILE, strerror(errno));
	bed_write(bed->base, bed->pages, bed->fresh);
	return sysfs_number(SPLITS) > before;
}

const struct event large_events[] = {
	{
		.name = "thp_collapse", .what = "MADV_COLLAPSE, then stores",
		.machine = true,
		.pages = BLOCK_PAGES, .sees = SEES_NEW, .deferred = 50, .acted = 50,
		.open = open_collapse, .arrange = arrange_collapse, .act = act_collapse,
	}, {
		.name = "thp_split", .what = "a folio of 64 KiB split, then stores",
		.machine = true,
		.pages = FOLIO_PAGES, .sees = SEES_NEW, .deferred = 50, .acted = 50,
		.open = open_folio, .arrange = arrange_split, .act = act_split,
	},
	{ 0 }
};
