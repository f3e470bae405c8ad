// SPDX-License-Identifier: GPL-2.0
/* Settings of the whole machine are borrowed: whoever exits puts them back, newest first. */
#include "sysfile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_SETTINGS 64

static struct setting {
	char path[256];
	char value[128];
} saved[MOST_SETTINGS];
static size_t saved_count;

static void restore_all(void)
{
	while (saved_count) {
		const struct setting *setting = &saved[--saved_count];

		/* Nothing better can be done at exit than to try. */
		if (!sysfile_write(setting->path, setting->value))
			fprintf(stderr, "warning: cannot set %s back to '%s': %m\n",
				setting->path, setting->value);
	}
}

static bool is_saved(const char *path)
{
	for (size_t i = 0; i < saved_count; i++)
		if (!strcmp(saved[i].path, path))
			return true;
	return false;
}

static bool save(const char *path)
{
	struct setting *setting = &saved[saved_count];
	char value[128];

	if (saved_count == MOST_SETTINGS || strlen(path) >= sizeof(setting->path)) {
		errno = ENOSPC;
		return false;
	}
	if (!sysfile_read(path, value, sizeof(value)))
		return false;
	if (!saved_count)
		atexit(restore_all);
	snprintf(setting->path, sizeof(setting->path), "%s", path);
	sysfile_selected(value, setting->value, sizeof(setting->value));
	saved_count++;
	return true;
}

void sysfile_disown(void)
{
	saved_count = 0;
}

bool sysfile_set_until_exit(const char *path, const char *value)
{
	if (!is_saved(path) && !save(path))
		return false;
	return sysfile_write(path, value);
}
