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

static uint64_t left[PAGES];	/* frames that the pages were in */

static bool was_left(uint64_t frame)
{
	for (size_t i = 0; i < PAGES; i++)
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
	*fd = tmpfs ? memfd_create("litmus", MFD_CLOEXEC) : -1;
	if (tmpfs && (*fd < 0 || ftruncate(*fd, FILL_PAGES * PAGE_BYTES)))
		die(EXIT_FAILED, "memfd_create: %m");
	return mmap(NULL, FILL_PAGES * PAGE_BYTES, PROT_READ | PROT_WRITE,
		    tmpfs ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, *fd, 0);
}

/* Take memory of the node the pages were on, write to it, let it go; true if some of it had been theirs. */
static bool reuse(struct bed *bed, int node, bool tmpfs)
{
	bool met = false;
	int fd;
	char *memory = map_fill(tmpfs, &fd);

	if (memory == MAP_FAILED)
		die(EXIT_FAILED, "no memory: %m");
	madvise(memory, FILL_PAGES * PAGE_BYTES, MADV_NOHUGEPAGE);
	node_bind(memory, FILL_PAGES * PAGE_BYTES, node);
	fill(memory);
	bed_judge(bed, SEES_OLD);
	for (size_t i = 0; i < FILL_PAGES; i++)
		met |= was_left(folio_frame(memory + i * PAGE_BYTES));
	munmap(memory, FILL_PAGES * PAGE_BYTES);
	if (fd >= 0)
		close(fd);
	return met;
}

static void arrange(struct bed *bed)
{
	mprotect(bed->base, bed->pages * PAGE_BYTES, PROT_READ | PROT_WRITE);
	bed_write(bed->base, bed->pages, bed->old);
	mprotect(bed->base, bed->pages * PAGE_BYTES, PROT_READ);
}

static void round_reuse(struct bed *bed)
{
	bool met = false, drain = bed_random(bed, 2);
	int node;

	arrange(bed);
	bed_touch(bed);
	for (size_t i = 0; i < PAGES; i++)
		left[i] = folio_frame(bed->base + i * PAGE_BYTES);
	node = bed->options->nodes[0] + bed->options->nodes[1] - bed_other_node(bed, bed->base);
	bed_move(bed);
	bed->report->deferred += bed->was_deferred;
	/* In one half of the rounds the frames are free and the entries flushed, in the other neither. */
	if (drain && !bed->options->off)
		migrc_write("drain", "1");
	for (int try = 0; try < TRIES && !bed->report->stale; try++)
		met |= reuse(bed, node, try & 1);
	bed->report->acted += met || bed->options->nodes[0] == bed->options->nodes[1];
}

const struct event reuse_events[] = {
	{
		.name = "reuse", .what = "others take and fill the frames that the pages have left",
		/* Only drained frames come to be reused, and not each time. */
		.sees = SEES_OLD, .deferred = 50, .acted = 5,
		.round = round_reuse,
	},
	{ 0 }
};
