// SPDX-License-Identifier: GPL-2.0
#include "sysfile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool sysfile_read(const char *path, char *value, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got;

	if (fd < 0)
		return false;
	got = read(fd, value, size - 1);
	close(fd);
	if (got < 0)
		return false;
	value[got] = '\0';
	value[strcspn(value, "\n")] = '\0';
	return true;
}

bool sysfile_write(const char *path, const char *value)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t put;
	int error;

	if (fd < 0)
		return false;
	put = write(fd, value, strlen(value));
	error = errno;
	close(fd);
	errno = error;
	return put == (ssize_t)strlen(value);
}

uint64_t sysfile_counter(const char *path, const char *key)
{
	FILE *file = fopen(path, "re");
	size_t length = strlen(key);
	uint64_t value = 0;
	char line[256];

	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file)) {
		if (!strncmp(line, key, length) && line[length] == ' ')
			sscanf(line + length, "%" SCNu64, &value);
	}
	fclose(file);
	return value;
}

void sysfile_selected(const char *value, char *word, size_t size)
{
	const char *open = strchr(value, '[');
	const char *close = open ? strchr(open, ']') : NULL;

	if (close)
		snprintf(word, size, "%.*s", (int)(close - open - 1), open + 1);
	else
		snprintf(word, size, "%s", value);
}
