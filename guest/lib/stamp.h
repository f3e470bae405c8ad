/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a page holds: every 64-bit word names the page it belongs to, the generation of the page's
 * content and its own place in the page. A page that is not copied, copied late, copied in part or
 * copied to the wrong place shows it, and the wrong word tells where it came from.
 */
#ifndef GUEST_STAMP_H
#define GUEST_STAMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAGE_BYTES ((size_t)4096)
#define PAGE_WORDS (PAGE_BYTES / sizeof(uint64_t))

/* 24 bits of page (64 GiB), 31 of generation, 9 of place; never 0, which fresh memory holds. */
#define STAMP_PAGES (1u << 24)
#define STAMP_GENERATIONS ((1u << 31) - 1)

struct mismatch {
	uint32_t page;
	uint32_t word;
	uint64_t expected;
	uint64_t found;
};

static inline uint64_t stamp_word(uint32_t page, uint32_t generation, uint32_t word)
{
	return (uint64_t)page << 40 | (uint64_t)(generation + 1) << 9 | word;
}

void stamp_write(void *memory, uint32_t page, uint32_t generation);

/* True if the whole page is of this generation; else *wrong names its first wrong word. */
bool stamp_check(const void *memory, uint32_t page, uint32_t generation, struct mismatch *wrong);

/* "page 7 generation 3 word 0 (0x...)": what a word claims to be. */
void stamp_describe(uint64_t word, char *text, size_t size);

#endif
