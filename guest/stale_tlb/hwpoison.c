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

static void open_failure(struct bed *bed)
{
	bed_debugfs();
	bed_map_anon(bed, bed->pages);
}

static void arrange(struct bed *bed)
{
	size_t bytes = bed->pages * PAGE_BYTES;

	if (mmap(bed->base, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
	    MAP_FAILED)
		die(EXIT_FAILED, "no memory: %m");
	unpoison();
	madvise(bed->base, bytes, MADV_NOHUGEPAGE);
	bed_write(bed->base, bed->pages, bed->old);
	bed_fork_once(bed);
}

static void open_source(struct bed *bed)
{
	open_failure(bed);
	if (access(POISON, W_OK) || access(SOFT_OFFLINE, W_OK))
		bed_skip(bed, "no failure of a frame (CONFIG_HWPOISON_INJECT, root)");
}

static void arrange_source(struct bed *bed)
{
	arrange(bed);
	source = folio_frame(bed->base);
}

static bool injected(struct bed *bed, int advice)
{
	poisoned = folio_frame(bed->base);
	if (!madvise(bed->base, bed->pages * PAGE_BYTES, advice))
		return true;
	poisoned = UINT64_MAX;
	if (errno == EINVAL || errno == EPERM)
		bed_skip(bed, "no memory failure (CONFIG_MEMORY_FAILURE, root)");
	return false;
}

static bool act_poison(struct bed *bed)
{
	return injected(bed, MADV_HWPOISON);
}

static bool act_soft(struct bed *bed)
{
	bool done = injected(bed, MADV_SOFT_OFFLINE) && folio_frame(bed->base) != poisoned;

	bed_judge(bed, SEES_OLD);
	bed_write(bed->base, bed->pages, bed->fresh);
	return done;
}

/* The frame is kept back when it fails: who cannot find it as a free one leaves it as it is. */
static bool lose_source(struct bed *bed, const char *file, uint64_t number)
{
	char text[32];
	bool done;

	/* Whose frame is it now? */
	if (!bed->was_deferred || folio_frame(bed->base) == source)
		return false;
	poisoned = source;
	snprintf(text, sizeof(text), "0x%" PRIx64, number);
	done = sysfs_write(file, text);
	if (!done)
		bed_stale(bed, "round %" PRIu64 ": frame 0x%" PRIx64 " is not taken out of use: %s",
			  bed->report->rounds, source, strerror(errno));
	return done;
}

static bool act_poison_source(struct bed *bed)
{
	return lose_source(bed, POISON, source);
}

static bool act_soft_source(struct bed *bed)
{
	return lose_source(bed, SOFT_OFFLINE, source * PAGE_BYTES);
}

static void close_failure(struct bed *bed)
{
	munmap(bed->base, bed->pages * PAGE_BYTES);
	unpoison();
}

const struct event failure_events[] = {
	{
		.name = "memory_failure", .what = "the page fails (MADV_HWPOISON)",
		.machine = true,
		.pages = 1, .sees = SEES_FAULT, .deferred = 50, .acted = 50,
		.open = open_failure, .arrange = arrange, .act = act_poison, .close = close_failure,
	}, {
		.name = "soft_offline", .what = "the content is taken elsewhere (MADV_SOFT_OFFLINE), then written",
		.machine = true,
		.pages = 1, .sees = SEES_NEW, .deferred = 50, .acted = 50,
		.open = open_failure, .arrange = arrange, .act = act_soft, .close = close_failure,
	}, {
		.name = "source_failure", .what = "the frame that the page has left fails",
		.machine = true,
		.pages = 1, .sees = SEES_OLD, .deferred = 50, .acted = 50,
		.open = open_source, .arrange = arrange_source, .act = act_poison_source, .close = close_failure,
	}, {
		.name = "source_offline", .what = "the frame that the page has left is taken out of use",
		.machine = true,
		.pages = 1, .sees = SEES_OLD, .deferred = 50, .acted = 50,
		.open = open_source, .arrange = arrange_source, .act = act_soft_source, .close = close_failure,
	},
	{ 0 }
};
