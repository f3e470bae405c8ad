// SPDX-License-Identifier: GPL-2.0
#include "cgroup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sysfs.h"
#include "util.h"

#define ROOT "/sys/fs/cgroup"

static void path_of(char *path, size_t size, unsigned int tenant, const char *file)
{
	snprintf(path, size, ROOT "/tierbench-%u%s", tenant, file);
}

bool cgroup_available(void)
{
	char controllers[256];

	return sysfs_read_line(ROOT "/cgroup.controllers", controllers, sizeof(controllers)) &&
	       strstr(controllers, "memory") && sysfs_write(ROOT "/cgroup.subtree_control", "+memory");
}

void cgroup_enter(unsigned int tenant)
{
	char path[128];

	path_of(path, sizeof(path), tenant, "");
	if (mkdir(path, 0755) && errno != EEXIST)
		die(EXIT_FAILED, "%s: %m", path);
	path_of(path, sizeof(path), tenant, "/cgroup.procs");
	if (!sysfs_write(path, "0"))
		die(EXIT_FAILED, "%s: %m", path);
}

void cgroup_remove(unsigned int tenant)
{
	char path[128];

	path_of(path, sizeof(path), tenant, "");
	if (rmdir(path) && errno != ENOENT)
		fprintf(stderr, "warning: cannot remove %s: %m\n", path);
}
