/* SPDX-License-Identifier: GPL-2.0 */
/* The memory that is read and moved: written once, in single pages, on one node. */
#ifndef TLB_AREA_H
#define TLB_AREA_H

#include <stdbool.h>
#include <stddef.h>

enum area_kind {
	AREA_FILE,	/* a file that nobody has open for writing, mapped read-only */
	AREA_ANON,	/* anonymous, mprotect()ed read-only after it was written */
	AREA_BOTH,	/* the first half of it a file, the second anonymous */
	AREA_WRITABLE,	/* anonymous and writable, on whatever node the kernel chooses */
};

struct area {
	char *base;
	size_t bytes;
	size_t pages;
	size_t step;	/* every step-th page is there, from the first on; the others are holes */
};

/*
 * `bytes` is a multiple of AREA_ALIGN. With `holes` every second page is freed again. `file` is a
 * path on tmpfs or on a disk file system; it is gone when the program ends.
 */
#define AREA_ALIGN ((size_t)2 << 20)
void area_open(struct area *area, enum area_kind kind, size_t bytes, int node, const char *file,
	       bool holes);
void area_close(struct area *area);

/* Look at one word of a page; a wrong one ends the program with EXIT_FAILED. */
void area_check_word(const struct area *area, size_t page, size_t word);

/* Look at every word of every page. */
void area_verify(const struct area *area);

#endif
