// SPDX-License-Identifier: GPL-2.0
/* Other mappings get the old frames of moved pages and write to them: the reader must never read that content. */
#include "fixture.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "folio.h"
#include "util.h"

/* The allocator hands out the last freed frames first, so a few pages are likely to get the old frames. */
#define FILL_BYTES (64 * PAGE_BYTES)

static uint64_t old_frames[DEFAULT_PAGES];

static bool is_old_frame(uint64_t frame)
{
	for (size_t i = 0; i < DEFAULT_PAGES; i++)
		if (old_frames[i] == frame)
			return true;
	return false;
}

/* Allocate memory on a node, write to it and free it. True if it got one of the old frames. */
static bool reuse_frames(struct fixture *fx, int node, bool tmpfs)
{
	int fd = tmpfs ? memfd_create("stale_tlb", MFD_CLOEXEC) : -1;
	bool reused = false;
	char *memory;

	if (tmpfs && (fd < 0 || ftruncate(fd, FILL_BYTES)))
		die(EXIT_FAILED, "memfd_create: %m");
	memory = mmap(NULL, FILL_BYTES, PROT_READ | PROT_WRITE, tmpfs ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS,
		      fd, 0);
	if (memory == MAP_FAILED)
		die(EXIT_FAILED, "no memory: %m");
	madvise(memory, FILL_BYTES, MADV_NOHUGEPAGE);
	node_bind(memory, FILL_BYTES, node);
	write_pattern(memory, FILL_BYTES);
	fixture_check(fx, EXPECT_OLD);
	for (size_t at = 0; at < FILL_BYTES; at += PAGE_BYTES)
		reused |= is_old_frame(folio_frame(memory + at));
	munmap(memory, FILL_BYTES);
	if (fd >= 0)
		close(fd);
	return reused;
}

static void run_reuse(struct fixture *fx)
{
	bool reused, drain = fixture_random(fx, 2);
	int node;

	setup_protected(fx);
	fixture_fill_tlb(fx);
	for (size_t i = 0; i < DEFAULT_PAGES; i++)
		old_frames[i] = folio_frame(fx->base + i * PAGE_BYTES);
	node = fixture_node(fx, fx->base);
	fixture_move(fx);
	fx->report->deferred += fx->was_deferred;
	/* After a drain, in half of the rounds, the TLB is flushed and the frames are free; otherwise neither is so. */
	if (drain && !fx->options->off)
		migrc_write("drain", "1");
	/* Only once: the unmapping of so many pages flushes all of the reader's TLB. */
	reused = reuse_frames(fx, node, fixture_random(fx, 2));
	fx->report->triggered += reused || fx->options->nodes[0] == fx->options->nodes[1];
}

const struct test reuse_tests[] = {
	{
		.name = "reuse", .description = "other mappings get the old frames and write to them",
		/* Only drained frames can be reused, and not each time. */
		.expect = EXPECT_OLD, .min_deferred = 50, .min_triggered = 5,
		.run_round = run_reuse,
	},
	{ 0 }
};
