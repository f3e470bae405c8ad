// SPDX-License-Identifier: GPL-2.0
#include "touch.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "util.h"

void touch_open(struct touched *touched, size_t bytes, size_t hot_bytes, uint64_t seed)
{
	size_t pages = bytes / PAGE_BYTES;

	*touched = (struct touched){ .pages = pages, .hot_pages = hot_bytes / PAGE_BYTES, .random = seed };
	touched->base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	touched->written = calloc(pages, sizeof(*touched->written));
	if (touched->base == MAP_FAILED || !touched->written)
		die(EXIT_FAILED, "cannot map %zu bytes: %m", bytes);
	/* It fails on a kernel without THP, where all folios are single pages anyway. */
	(void)!madvise(touched->base, bytes, MADV_NOHUGEPAGE);
	for (size_t page = 0; page < pages; page++)
		touch_page(touched, page);
}

static size_t window_of(const struct touched *touched, unsigned int shift)
{
	return shift % (touched->pages / touched->hot_pages) * touched->hot_pages;
}

void touch_renew(struct touched *touched, unsigned int shift)
{
	size_t first = window_of(touched, shift);

	if (madvise(touched->base + first * PAGE_BYTES, touched->hot_pages * PAGE_BYTES, MADV_DONTNEED))
		die(EXIT_FAILED, "madvise: %m");
	memset(touched->written + first, 0, touched->hot_pages * sizeof(*touched->written));
}

size_t touch_choose(struct touched *touched, unsigned int shift)
{
	if (xorshift64(&touched->random) % COLD_EVERY == 0)
		return xorshift64(&touched->random) % touched->pages;
	return window_of(touched, shift) + xorshift64(&touched->random) % touched->hot_pages;
}

bool touch_page(struct touched *touched, size_t page)
{
	volatile uint64_t *word = (uint64_t *)(touched->base + page * PAGE_BYTES) + page % PAGE_WORDS;
	uint64_t seen = *word, expected = touched->written[page]++;

	*word = seen + 1;
	return (uint32_t)seen == expected;
}
