// SPDX-License-Identifier: GPL-2.0
/* Memory that fails, or is said to: the page that is used now, or its old frame, which is in quarantine. */
#include "fixture.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "folio.h"
#include "sysfs.h"
#include "util.h"

#ifndef MADV_SOFT_OFFLINE
#define MADV_SOFT_OFFLINE 101
#endif

#define UNPOISON "/sys/kernel/debug/hwpoison/unpoison-pfn"
#define POISON "/sys/kernel/debug/hwpoison/corrupt-pfn"
#define SOFT_OFFLINE "/sys/devices/system/memory/soft_offline_page"

static uint64_t poisoned = UINT64_MAX;
static uint64_t source;		/* the frame that the page is about to leave */

/* Best effort: where the kernel cannot, the machine has a page less. */
static void unpoison(void)
{
	char frame[32];

	if (poisoned == UINT64_MAX)
		return;
	snprintf(frame, sizeof(frame), "0x%" PRIx64, poisoned);
	sysfs_write(UNPOISON, frame);
	poisoned = UINT64_MAX;
}

static void fixture_setup_failure(struct fixture *fx)
{
	mount_debugfs();
	fixture_map_anon(fx, fx->pages);
}

static void setup_pages(struct fixture *fx)
{
	size_t bytes = fx->pages * PAGE_BYTES;

	if (mmap(fx->base, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
	    MAP_FAILED)
		die(EXIT_FAILED, "no memory: %m");
	unpoison();
	madvise(fx->base, bytes, MADV_NOHUGEPAGE);
	write_pages(fx->base, fx->pages, fx->old);
	fixture_fork_and_reap(fx);
}

static void fixture_setup_source(struct fixture *fx)
{
	fixture_setup_failure(fx);
	if (access(POISON, W_OK) || access(SOFT_OFFLINE, W_OK))
		test_skip(fx, "no failure of a frame (CONFIG_HWPOISON_INJECT, root)");
}

static void setup_source(struct fixture *fx)
{
	setup_pages(fx);
	source = folio_frame(fx->base);
}

static bool injected(struct fixture *fx, int advice)
{
	poisoned = folio_frame(fx->base);
	if (!madvise(fx->base, fx->pages * PAGE_BYTES, advice))
		return true;
	poisoned = UINT64_MAX;
	if (errno == EINVAL || errno == EPERM)
		test_skip(fx, "no memory failure (CONFIG_MEMORY_FAILURE, root)");
	return false;
}

static bool trigger_poison(struct fixture *fx)
{
	return injected(fx, MADV_HWPOISON);
}

static bool trigger_soft(struct fixture *fx)
{
	bool done = injected(fx, MADV_SOFT_OFFLINE) && folio_frame(fx->base) != poisoned;

	fixture_check(fx, EXPECT_OLD);
	write_pages(fx->base, fx->pages, fx->new);
	return done;
}

/* The frame is kept back when it fails: who cannot find it as a free one leaves it as it is. */
static bool lose_source(struct fixture *fx, const char *file, uint64_t number)
{
	char text[32];
	bool done;

	/* Whose frame is it now? */
	if (!fx->was_deferred || folio_frame(fx->base) == source)
		return false;
	poisoned = source;
	snprintf(text, sizeof(text), "0x%" PRIx64, number);
	done = sysfs_write(file, text);
	if (!done)
		test_stale(fx, "round %" PRIu64 ": frame 0x%" PRIx64 " is not taken out of use: %s",
			  fx->report->rounds, source, strerror(errno));
	return done;
}

static bool trigger_poison_source(struct fixture *fx)
{
	return lose_source(fx, POISON, source);
}

static bool trigger_soft_source(struct fixture *fx)
{
	return lose_source(fx, SOFT_OFFLINE, source * PAGE_BYTES);
}

static void fixture_teardown_failure(struct fixture *fx)
{
	munmap(fx->base, fx->pages * PAGE_BYTES);
	unpoison();
}

const struct test hwpoison_tests[] = {
	{
		.name = "memory_failure", .description = "the page fails (MADV_HWPOISON)",
		.machine = true, .pages = 1, .expect = EXPECT_FAULT, .min_deferred = 50, .min_triggered = 50,
		.fixture_setup = fixture_setup_failure, .fixture_teardown = fixture_teardown_failure,
		.setup = setup_pages, .trigger = trigger_poison,
	}, {
		.name = "soft_offline", .description = "the content is taken elsewhere (MADV_SOFT_OFFLINE), then written",
		.machine = true, .pages = 1, .expect = EXPECT_NEW, .min_deferred = 50, .min_triggered = 50,
		.fixture_setup = fixture_setup_failure, .fixture_teardown = fixture_teardown_failure,
		.setup = setup_pages, .trigger = trigger_soft,
	}, {
		.name = "source_failure", .description = "the frame that the page has left fails",
		.machine = true, .pages = 1, .expect = EXPECT_OLD, .min_deferred = 50, .min_triggered = 50,
		.fixture_setup = fixture_setup_source, .fixture_teardown = fixture_teardown_failure,
		.setup = setup_source, .trigger = trigger_poison_source,
	}, {
		.name = "source_offline", .description = "the frame that the page has left is taken out of use",
		.machine = true, .pages = 1, .expect = EXPECT_OLD, .min_deferred = 50, .min_triggered = 50,
		.fixture_setup = fixture_setup_source, .fixture_teardown = fixture_teardown_failure,
		.setup = setup_source, .trigger = trigger_soft_source,
	},
	{ 0 }
};
