// SPDX-License-Identifier: GPL-2.0
#include "migrator.h"

#include <stdio.h>
#include <string.h>

#include "sysfile.h"

#define SELECTOR MIGRATION_DIR "/migrator"

bool migrators_list(struct migrators *migrators)
{
	char line[512], *rest = line, *word;

	*migrators = (struct migrators){ 0 };
	if (!sysfile_read(SELECTOR, line, sizeof(line)))
		return false;
	while (migrators->count < MOST_MIGRATORS && (word = strtok_r(rest, " ", &rest))) {
		if (word[0] == '[')
			migrators->selected = migrators->count;
		sysfile_selected(word, migrators->names[migrators->count++],
				 sizeof(migrators->names[0]));
	}
	return true;
}

bool migrator_select(const char *name)
{
	/* Also what is selected at the start comes back at exit. */
	return sysfile_set_until_exit(SELECTOR, name);
}

int migrators_find(const struct migrators *migrators, const char *name)
{
	for (size_t i = 0; i < migrators->count; i++)
		if (!strcmp(migrators->names[i], name))
			return i;
	return -1;
}
