// SPDX-License-Identifier: GPL-2.0
#include "migrc.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sysfile.h"

#define MOST_PATH 160

static const char *path_of(char *path, const char *name)
{
	snprintf(path, MOST_PATH, MIGRC_DIR "/%s", name);
	return path;
}

bool migrc_present(void)
{
	return !access(MIGRC_DIR "/enabled", F_OK);
}

uint64_t migrc_number(const char *name)
{
	char path[MOST_PATH], value[32];

	return sysfile_read(path_of(path, name), value, sizeof(value)) ? strtoull(value, NULL, 10) : 0;
}

bool migrc_set(const char *knob, const char *value)
{
	char path[MOST_PATH];

	return sysfile_set_until_exit(path_of(path, knob), value);
}

bool migrc_write(const char *knob, const char *value)
{
	char path[MOST_PATH];

	return sysfile_write(path_of(path, knob), value);
}
