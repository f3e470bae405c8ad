// SPDX-License-Identifier: GPL-2.0
/* Memory failure and soft offline of the page that is in use, or of its old frame, which is in quarantine. */
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
static uint64_t old_frame;

/* Best effort: if the kernel cannot unpoison the frame, the machine has a page less. */
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

static void setup_poison(struct fixture *fx)
{
	fixture_remap_anon(fx, MADV_NOHUGEPAGE);
	unpoison();
	setup_forked(fx);
}

static void fixture_setup_old_frame(struct fixture *fx)
{
	fixture_setup_failure(fx);
	if (access(POISON, W_OK) || access(SOFT_OFFLINE, W_OK))
		test_skip(fx, "no error injection by frame (CONFIG_HWPOISON_INJECT, root)");
	if (fx->options->off)
		test_skip(fx, "--off leaves no old frame in quarantine");
}

static void setup_old_frame(struct fixture *fx)
{
	setup_poison(fx);
	old_frame = folio_frame(fx->base);
}

static bool inject(struct fixture *fx, int advice)
{
	poisoned = folio_frame(fx->base);
	if (!madvise(fx->base, fixture_bytes(fx), advice))
		return true;
	poisoned = UINT64_MAX;
	if (errno == EINVAL || errno == EPERM)
		test_skip(fx, "no memory failure (CONFIG_MEMORY_FAILURE, root)");
	return false;
}

static bool trigger_poison(struct fixture *fx)
{
	return inject(fx, MADV_HWPOISON);
}

static bool trigger_soft(struct fixture *fx)
{
	bool done = inject(fx, MADV_SOFT_OFFLINE) && folio_frame(fx->base) != poisoned;

	fixture_check(fx, EXPECT_OLD);
	trigger_store(fx);
	return done;
}

/*
 * Take the old frame out of use while migrc holds it in quarantine. Unless migrc drains the quarantine first, the
 * kernel does not find the frame among the free ones, and leaves it as it is.
 */
static bool take_old_frame(struct fixture *fx, const char *file, uint64_t number)
{
	char text[32];
	bool done;

	/* Without a deferral the frame may have another owner; after a failed move it is still this page's. */
	if (!fx->was_deferred || folio_frame(fx->base) == old_frame)
		return false;
	poisoned = old_frame;
	snprintf(text, sizeof(text), "0x%" PRIx64, number);
	done = sysfs_write(file, text);
	if (!done)
		test_stale(fx, "frame 0x%" PRIx64 " is not taken out of use: %s", old_frame, strerror(errno));
	return done;
}

static bool trigger_poison_old_frame(struct fixture *fx)
{
	return take_old_frame(fx, POISON, old_frame);
}

static bool trigger_soft_old_frame(struct fixture *fx)
{
	return take_old_frame(fx, SOFT_OFFLINE, old_frame * PAGE_BYTES);
}

static void fixture_teardown_failure(struct fixture *fx)
{
	munmap(fx->base, fixture_bytes(fx));
	unpoison();
}

const struct test hwpoison_tests[] = {
	{
		.name = "memory_failure", .description = "memory failure of the page (MADV_HWPOISON)",
		.machine = true, .pages = 1, .expect = EXPECT_FAULT, .min_deferred = 50, .min_triggered = 50,
		.fixture_setup = fixture_setup_failure, .fixture_teardown = fixture_teardown_failure,
		.setup = setup_poison, .trigger = trigger_poison,
	}, {
		.name = "soft_offline", .description = "soft offline of the page (MADV_SOFT_OFFLINE), then stores",
		.machine = true, .pages = 1, .expect = EXPECT_NEW, .min_deferred = 50, .min_triggered = 50,
		.fixture_setup = fixture_setup_failure, .fixture_teardown = fixture_teardown_failure,
		.setup = setup_poison, .trigger = trigger_soft,
	}, {
		.name = "source_failure", .description = "memory failure of the old frame",
		.machine = true, .pages = 1, .expect = EXPECT_OLD, .min_deferred = 50, .min_triggered = 50,
		.fixture_setup = fixture_setup_old_frame, .fixture_teardown = fixture_teardown_failure,
		.setup = setup_old_frame, .trigger = trigger_poison_old_frame,
	}, {
		.name = "source_offline", .description = "soft offline of the old frame",
		.machine = true, .pages = 1, .expect = EXPECT_OLD, .min_deferred = 50, .min_triggered = 50,
		.fixture_setup = fixture_setup_old_frame, .fixture_teardown = fixture_teardown_failure,
		.setup = setup_old_frame, .trigger = trigger_soft_old_frame,
	},
	{ 0 }
};
