// SPDX-License-Identifier: GPL-2.0
/* Pages that the kernel merges with their twins. */
#include "fixture.h"

#include <errno.h>
#include <linux/kernel-page-flags.h>
#include <string.h>
#include <sys/mman.h>

#include "folio.h"
#include "sysfs.h"
#include "util.h"

#define MERGE_NS UINT64_C(5000000000)
#define STEP_NS 10000000

static char *twins;

static size_t bytes_of(const struct bed *bed)
{
	return bed->pages * PAGE_BYTES;
}

static void open_ksm(struct bed *bed)
{
	twins = bed_map_anon(bed, bed->pages);
	bed_map_anon(bed, bed->pages);
	if (!ksm_scan_fast(false))
		bed_skip(bed, "no KSM (CONFIG_KSM)");
}

static void advise(struct bed *bed, int advice)
{
	if (madvise(bed->base, bytes_of(bed), advice) || madvise(twins, bytes_of(bed), advice))
		bed_broken(bed, "madvise: %s", strerror(errno));
}

static void arrange_ksm(struct bed *bed)
{
	sysfs_write(KSM_DIR "run", "0");
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

	sysfs_write(KSM_DIR "run", "1");
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

const struct event merge_events[] = {
	{
		.name = "ksm", .what = "merged with their twins after the move, then written",
		.machine = true,
		.sees = SEES_NEW, .deferred = 50, .acted = 50,
		.open = open_ksm, .arrange = arrange_ksm, .act = act_ksm, .close = close_ksm,
	},
	{ 0 }
};
