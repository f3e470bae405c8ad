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

static size_t bytes_of(const struct fixture *fx)
{
	return fx->pages * PAGE_BYTES;
}

static void fixture_setup_ksm(struct fixture *fx)
{
	twins = fixture_map_anon(fx, fx->pages);
	fixture_map_anon(fx, fx->pages);
	if (!ksm_scan_fast(false))
		test_skip(fx, "no KSM (CONFIG_KSM)");
}

static void advise(struct fixture *fx, int advice)
{
	if (madvise(fx->base, bytes_of(fx), advice) || madvise(twins, bytes_of(fx), advice))
		test_error(fx, "madvise: %s", strerror(errno));
}

static void setup_ksm(struct fixture *fx)
{
	sysfs_write(KSM_DIR "run", "0");
	advise(fx, MADV_UNMERGEABLE);
	write_pages(fx->base, fx->pages, fx->old);
	write_pages(twins, fx->pages, fx->old);
	advise(fx, MADV_MERGEABLE);
	fixture_fork_and_reap(fx);
}

/* By the page itself: the kernel's counters hold what is no more until ksmd comes by. */
static bool merged(const struct fixture *fx)
{
	return folio_flags(fx->base) & UINT64_C(1) << KPF_KSM;
}

static bool trigger_ksm(struct fixture *fx)
{
	uint64_t start = clock_ns();
	bool done;

	sysfs_write(KSM_DIR "run", "1");
	while (!(done = merged(fx)) && clock_ns() - start < MERGE_NS)
		sleep_ns(STEP_NS);
	fixture_check(fx, EXPECT_OLD);
	write_pages(fx->base, fx->pages, fx->new);
	return done;
}

static void fixture_teardown_ksm(struct fixture *fx)
{
	advise(fx, MADV_UNMERGEABLE);
}

const struct test ksm_tests[] = {
	{
		.name = "ksm", .description = "merged with their twins after the move, then written",
		.machine = true, .expect = EXPECT_NEW, .min_deferred = 50, .min_triggered = 50,
		.fixture_setup = fixture_setup_ksm, .fixture_teardown = fixture_teardown_ksm,
		.setup = setup_ksm, .trigger = trigger_ksm,
	},
	{ 0 }
};
