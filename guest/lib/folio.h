/* SPDX-License-Identifier: GPL-2.0 */
/* What folios memory really consists of, by /proc/self/pagemap and /proc/kpageflags (root only). */
#ifndef GUEST_FOLIO_H
#define GUEST_FOLIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct folio_census {
	size_t asked;		/* folios there should be */
	size_t exact;		/* folios of exactly the size asked for */
	size_t absent;		/* of those that are not: first page not mapped */
	size_t swapcache;	/* folios in the swap cache */
	size_t seen_bytes;	/* size of the first folio that is not exact; 0: unknown */
};

struct folio_census folio_census(const char *base, size_t bytes, size_t folio_bytes);

/* Frame number of the page at an address; UINT64_MAX if nothing is mapped there. */
uint64_t folio_frame(const void *address);

/* Index of the first page from an address on where nothing is mapped; `pages`, at most 512, if there is none. */
size_t folio_first_absent(const void *address, size_t pages);

/* The flags of /proc/kpageflags of the page at an address; 0 if nothing is mapped there. */
uint64_t folio_flags(const void *address);

/* Written since /proc/self/clear_refs was told to forget; false, too, where the kernel does not tell. */
bool folio_soft_dirty(const void *address);

/* "frame 0x1234, kpageflags 0x..., mapped 2 times": to tell why a page does not do as it should. */
void folio_describe(const char *address, char *text, size_t size);

#endif
