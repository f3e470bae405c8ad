// SPDX-License-Identifier: GPL-2.0
#include "module.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

bool module_load(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool loaded;
	int error;

	if (fd < 0)
		return false;
	loaded = !syscall(SYS_finit_module, fd, "", 0);
	error = errno;
	close(fd);
	errno = error;
	return loaded;
}

/* The kernel's name for it: the file's, without its suffix and with _ for -. */
static void module_name(const char *path, char *name, size_t size)
{
	const char *slash = strrchr(path, '/');

	snprintf(name, size, "%s", slash ? slash + 1 : path);
	name[strcspn(name, ".")] = '\0';
	for (char *c = name; *c; c++)
		if (*c == '-')
			*c = '_';
}

bool module_unload(const char *path)
{
	char name[64];

	module_name(path, name, sizeof(name));
	return !syscall(SYS_delete_module, name, O_NONBLOCK);
}
