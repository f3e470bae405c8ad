// SPDX-License-Identifier: GPL-2.0
/* Frames that the pages have left are given to others, who fill them: the reader must never see that. */
#include "fixture.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "folio.h"
#include "util.h"

/* What was freed last is allocated first. */
#define FILL_PAGES 64
#define TRIES 2
#define PATTERN UINT64_C(0x5555555555555555)

static uint64_t left[DEFAULT_PAGES];	/* frames that the pages were in */

static bool was_left(uint64_t frame)
{
	for (size_t i = 0; i < DEFAULT_PAGES; i++)
		if (left[i] == frame)
			return true;
	return false;
}

static void fill(char *memory)
{
	for (size_t i = 0; i < FILL_PAGES; i++)
		for (size_t at = 0; at < PAGE_BYTES; at += sizeof(uint64_t))
			*(volatile uint64_t *)(memory + i * PAGE_BYTES + at) = PATTERN;
}

static char *map_fill(bool tmpfs, int *fd)
{
	*fd = tmpfs ? memfd_create("stale_tlb", MFD_CLOEXEC) : -1;
	if (tmpfs && (*fd < 0 || ftruncate(*fd, FILL_PAGES * PAGE_BYTES)))
		die(EXIT_FAILED, "memfd_create: %m");
	return mmap(NULL, FILL_PAGES * PAGE_BYTES, PROT_READ | PROT_WRITE,
		    tmpfs ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, *fd, 0);
}

/* Take memory of the node the pages were on, write to it, let it go; true if some of it had been theirs. */
static bool reuse(struct fixture *fx, int node, bool tmpfs)
{
	bool met = false;
	int fd;
	char *memory = map_fill(tmpfs, &fd);

	if (memory == MAP_FAILED)
		die(EXIT_FAILED, "no memory: %m");
	madvise(memory, FILL_PAGES * PAGE_BYTES, MADV_NOHUGEPAGE);
	node_bind(memory, FILL_PAGES * PAGE_BYTES, node);
	fill(memory);
	fixture_check(fx, EXPECT_OLD);
	for (size_t i = 0; i < FILL_PAGES; i++)
		met |= was_left(folio_frame(memory + i * PAGE_BYTES));
	munmap(memory, FILL_PAGES * PAGE_BYTES);
	if (fd >= 0)
		close(fd);
	return met;
}

static void setup_pages(struct fixture *fx)
{
	mprotect(fx->base, fx->pages * PAGE_BYTES, PROT_READ | PROT_WRITE);
	write_pages(fx->base, fx->pages, fx->old);
	mprotect(fx->base, fx->pages * PAGE_BYTES, PROT_READ);
}

static void run_reuse(struct fixture *fx)
{
	bool met = false, drain = fixture_random(fx, 2);
	int node;

	setup_pages(fx);
	fixture_fill_tlb(fx);
	for (size_t i = 0; i < DEFAULT_PAGES; i++)
		left[i] = folio_frame(fx->base + i * PAGE_BYTES);
	node = fx->options->nodes[0] + fx->options->nodes[1] - fixture_other_node(fx, fx->base);
	fixture_move(fx);
	fx->report->deferred += fx->was_deferred;
	/* In one half of the rounds the frames are free and the entries flushed, in the other neither. */
	if (drain && !fx->options->off)
		migrc_write("drain", "1");
	for (int try = 0; try < TRIES && !fx->report->stale; try++)
		met |= reuse(fx, node, try & 1);
	fx->report->triggered += met || fx->options->nodes[0] == fx->options->nodes[1];
}

const struct test reuse_tests[] = {
	{
		.name = "reuse", .description = "others take and fill the frames that the pages have left",
		/* Only drained frames come to be reused, and not each time. */
		.expect = EXPECT_OLD, .min_deferred = 50, .min_triggered = 5,
		.run_round = run_reuse,
	},
	{ 0 }
};
