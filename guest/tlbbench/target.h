/* SPDX-License-Identifier: GPL-2.0 */
/* The memory that is read and moved: written once, in single pages, on one node. */
#ifndef TLBBENCH_TARGET_H
#define TLBBENCH_TARGET_H

#include <stdbool.h>
#include <stddef.h>

enum target_kind {
	TARGET_FILE,	/* a file, mapped read-only, that no process has open for writing */
	TARGET_ANON,	/* anonymous, mprotect()ed read-only after it was written */
	TARGET_BOTH,	/* the first half of it a file, the second anonymous */
};

struct target {
	char *base;
	size_t bytes;
	size_t pages;
	size_t step;	/* every step-th page is present, from the first on; the others are holes */
};

/* By kind; ends with NULL. */
extern const char *const target_kind_names[];

/*
 * `bytes` is a multiple of FOLIO_ALIGN. With `holes` every second page is freed again. `file` is a path on tmpfs or on
 * a disk file system; the file is unlinked as soon as it is mapped.
 */
void target_open(struct target *target, enum target_kind kind, size_t bytes, int node, const char *file,
		 bool holes);
void target_close(struct target *target);

/* Check one word of a page; if it is wrong, the program ends with EXIT_FAILED. */
void target_check_word(const struct target *target, size_t page, size_t word);

/* Check every word of every page. */
void target_verify(const struct target *target);

#endif
