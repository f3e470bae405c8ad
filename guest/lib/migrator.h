/* SPDX-License-Identifier: GPL-2.0 */
/* The selector of migrators, "[off] kernel mtcopy", and what belongs to a migrator. */
#ifndef GUEST_MIGRATOR_H
#define GUEST_MIGRATOR_H

#include <stdbool.h>
#include <stddef.h>

#define MIGRATION_DIR "/sys/kernel/mm/migration"
#define MOST_MIGRATORS 16

struct migrators {
	char names[MOST_MIGRATORS][32];
	size_t count;
	size_t selected;	/* index */
};

/* False and errno if this kernel has no selector. */
bool migrators_list(struct migrators *migrators);

/* False and errno (EINVAL: no such migrator) if refused. */
bool migrator_select(const char *name);

/* Index of a name, or -1. */
int migrators_find(const struct migrators *migrators, const char *name);

#endif
