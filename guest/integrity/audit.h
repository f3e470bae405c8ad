/* SPDX-License-Identifier: GPL-2.0 */
/* Final checks, after all workers have exited. */
#ifndef INTEGRITY_AUDIT_H
#define INTEGRITY_AUDIT_H

#include "test_memory.h"

/* Check that every page of every area has the content of its generation. */
void audit_content(struct test_memory *mem);

/* Check that every page moves to either node, so that no reference, lock or pin is left. */
void audit_references(struct test_memory *mem);

/* Drop caches; return the kB that are free on all nodes. */
uint64_t audit_free_kb(void);

/* Check, for up to 60 s, that free memory is within leak_kb of `before`; return the last figure in kB. */
uint64_t audit_memory(struct test_memory *mem, uint64_t before, unsigned int leak_kb);

#endif
