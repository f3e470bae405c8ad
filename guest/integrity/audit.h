/* SPDX-License-Identifier: GPL-2.0 */
/* What must hold when all workers have gone. */
#ifndef INTEGRITY_AUDIT_H
#define INTEGRITY_AUDIT_H

#include "test_memory.h"

/* Every page of every area holds what the generations says. */
void audit_content(struct test_memory *mem);

/* Every page can be moved to either node: nobody has kept a reference, a lock or a pin. */
void audit_references(struct test_memory *mem);

/* kB free on all nodes after caches have been dropped. */
uint64_t audit_free_kb(void);

/* The same, once it is near `before` or, after some seconds, as it is; too little is an error. */
uint64_t audit_memory(struct test_memory *mem, uint64_t before, unsigned int leak_kb);

#endif
