/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory: the nodes that it is on, the folios that it consists of, and stamps, the content by which a wrong byte is
 * recognised.
 */
#ifndef GUEST_FOLIO_H
#define GUEST_FOLIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

/* Newer than the C library's headers of Debian 12. */
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

/* The alignment at which memory can hold a folio of any size. */
#define FOLIO_ALIGN ((size_t)2 << 20)

/*
 * Address space without access, of `bytes` from a multiple of FOLIO_ALIGN on, for mmap(MAP_FIXED) to replace. Ends the
 * program with EXIT_FAILED if there is none.
 */
char *folio_reserve(size_t bytes);

/* Ends the program with EXIT_MISSING unless the node exists and has memory. */
void node_require(const char *option, int node);

/*
 * kB free on all nodes. Unlike MemFree this also counts the free pages on per-CPU lists, which may be tens of megabytes
 * after a busy time.
 */
uint64_t nodes_free_kb(void);

/* MemFree of one node in kB; 0 if there is no such node. */
uint64_t node_free_kb(int node);

/* Let memory at this address be allocated on this node only. */
void node_bind(void *memory, size_t bytes, int node);

/* The folios of a range, by /proc/self/pagemap and /proc/kpageflags (root only). */
struct folio_census {
	size_t asked;		/* folios there should be */
	size_t exact;		/* folios of exactly the size asked for */
	size_t absent;		/* of those that are not: first page not mapped */
	size_t swapcache;	/* folios in the swap cache */
	size_t seen_bytes;	/* size of the first folio that is not exact; 0: unknown */
};

struct folio_census folio_census(const char *base, size_t bytes, size_t folio_bytes);

/* Frame number of the page at an address; UINT64_MAX if no page is mapped there. */
uint64_t folio_frame(const void *address);

/* Index of the first page from an address on that is not mapped; `pages`, at most 512, if all are. */
size_t folio_first_absent(const void *address, size_t pages);

/* The flags of /proc/kpageflags of the page at an address; 0 if no page is mapped there. */
uint64_t folio_flags(const void *address);

/* Whether the page was written since /proc/self/clear_refs was; false, too, if the kernel does not track it. */
bool folio_soft_dirty(const void *address);

/* "frame 0x1234, kpageflags 0x..., mapped 2 times": the state of a page, for an error message. */
void folio_describe(const char *address, char *text, size_t size);

/*
 * A stamp is the content of a page: each 64-bit word names the page, the generation of the page's content and the
 * word's own place in the page. If a page is not copied, copied late, copied in part or copied to the wrong place, a
 * word differs, and tells where it came from.
 */

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

/* "page 7 generation 3 word 0 (0x...)": the stamp that a word is part of. */
void stamp_describe(uint64_t word, char *text, size_t size);

#endif
