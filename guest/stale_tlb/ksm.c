// SPDX-License-Identifier: GPL-2.0
/* Pages that KSM merges with others of the same content. */
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

static char *duplicates;

static void fixture_setup_ksm(struct fixture *fx)
{
	duplicates = fixture_map_anon(fx, fx->pages);
	fixture_map_anon(fx, fx->pages);
	if (!ksm_scan_fast(false, 10))
		test_skip(fx, "no KSM (CONFIG_KSM)");
}

static void advise(struct fixture *fx, int advice)
{
	if (madvise(fx->base, fixture_bytes(fx), advice) || madvise(duplicates, fixture_bytes(fx), advice))
		test_error(fx, "madvise: %s", strerror(errno));
}

static void setup_ksm(struct fixture *fx)
{
	sysfs_write(KSM_DIR "run", "0");
	advise(fx, MADV_UNMERGEABLE);
	write_pages(fx->base, fx->pages, fx->old);
	write_pages(duplicates, fx->pages, fx->old);
	advise(fx, MADV_MERGEABLE);
	fixture_fork_and_reap(fx);
}

static bool trigger_ksm(struct fixture *fx)
{
	uint64_t start = clock_ns();
	bool merged;

	sysfs_write(KSM_DIR "run", "1");
	/* Ask the page itself: until ksmd scans again, the counters include pages that are no longer merged. */
	while (!(merged = folio_flags(fx->base) & UINT64_C(1) << KPF_KSM) && clock_ns() - start < MERGE_NS)
		sleep_ns(STEP_NS);
	fixture_check(fx, EXPECT_OLD);
	trigger_store(fx);
	return merged;
}

static void fixture_teardown_ksm(struct fixture *fx)
{
	advise(fx, MADV_UNMERGEABLE);
}

const struct test ksm_tests[] = {
	{
		.name = "ksm", .description = "KSM merges the pages after the move, then stores",
		.machine = true, .expect = EXPECT_NEW, .min_deferred = 50, .min_triggered = 50,
		.fixture_setup = fixture_setup_ksm, .fixture_teardown = fixture_teardown_ksm,
		.setup = setup_ksm, .trigger = trigger_ksm,
	},
	{ 0 }
};
