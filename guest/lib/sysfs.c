// SPDX-License-Identifier: GPL-2.0
#include "sysfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util.h"

#define MAX_SETTINGS 64

bool sysfs_read_line(const char *path, char *value, size_t size)
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

uint64_t sysfs_number(const char *path)
{
	char value[32];

	return sysfs_read_line(path, value, sizeof(value)) ? strtoull(value, NULL, 10) : 0;
}

bool sysfs_write(const char *path, const char *value)
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

uint64_t sysfs_counter(const char *path, const char *key)
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

void sysfs_selected(const char *value, char *word, size_t size)
{
	const char *open = strchr(value, '[');
	const char *close = open ? strchr(open, ']') : NULL;

	if (close)
		snprintf(word, size, "%.*s", (int)(close - open - 1), open + 1);
	else
		snprintf(word, size, "%s", value);
}

static struct setting {
	char path[256];
	char value[128];
} saved[MAX_SETTINGS];
static size_t saved_count;

static void restore(const struct setting *setting)
{
	if (!sysfs_write(setting->path, setting->value))
		fprintf(stderr, "warning: cannot set %s back to '%s': %m\n", setting->path, setting->value);
}

/* The program exits already, so a warning is all that it can do. */
static void restore_all(void)
{
	while (saved_count)
		restore(&saved[--saved_count]);
}

void sysfs_restore(const char *path)
{
	for (size_t i = 0; i < saved_count; i++)
		if (!strcmp(saved[i].path, path))
			restore(&saved[i]);
}

static bool save(const char *path)
{
	struct setting *setting = &saved[saved_count];
	char value[128];

	for (size_t i = 0; i < saved_count; i++)
		if (!strcmp(saved[i].path, path))
			return true;
	if (saved_count == MAX_SETTINGS || strlen(path) >= sizeof(setting->path)) {
		errno = ENOSPC;
		return false;
	}
	if (!sysfs_read_line(path, value, sizeof(value)))
		return false;
	if (!saved_count)
		atexit(restore_all);
	snprintf(setting->path, sizeof(setting->path), "%s", path);
	sysfs_selected(value, setting->value, sizeof(setting->value));
	saved_count++;
	return true;
}

bool sysfs_set_until_exit(const char *path, const char *value)
{
	return save(path) && sysfs_write(path, value);
}

void sysfs_disown(void)
{
	saved_count = 0;
}

static bool thp_set(const char *size_dir, bool shmem, const char *value)
{
	char path[sizeof(THP_DIR) + 300];

	snprintf(path, sizeof(path), THP_DIR "/%s/%s", size_dir, shmem ? "shmem_enabled" : "enabled");
	return sysfs_set_until_exit(path, value);
}

bool thp_allow(size_t folio_bytes, bool shmem)
{
	char size_dir[64];

	snprintf(size_dir, sizeof(size_dir), "hugepages-%zukB", folio_bytes / 1024);
	return thp_set(size_dir, shmem, shmem ? "advise" : "madvise");
}

static bool thp_forbid_all(bool shmem)
{
	DIR *dir = opendir(THP_DIR);
	struct dirent *entry;
	bool done = true;

	if (!dir)
		return false;
	while (done && (entry = readdir(dir)))
		/* ENOENT: not every size exists for both kinds of memory. */
		if (!strncmp(entry->d_name, "hugepages-", 10))
			done = thp_set(entry->d_name, shmem, "never") || errno == ENOENT;
	closedir(dir);
	return done;
}

bool thp_allow_only(size_t folio_bytes, bool shmem)
{
	/* MADV_NOHUGEPAGE gives single pages whatever the machine allows. */
	if (folio_bytes == PAGE_BYTES)
		return true;
	return thp_forbid_all(shmem) && thp_allow(folio_bytes, shmem);
}

bool ksm_scan_fast(bool merge, unsigned int rest_ms)
{
	char rest[16];

	snprintf(rest, sizeof(rest), "%u", rest_ms);
	return sysfs_set_until_exit(KSM_DIR "pages_to_scan", "2000") &&
	       sysfs_set_until_exit(KSM_DIR "sleep_millisecs", rest) &&
	       sysfs_set_until_exit(KSM_DIR "run", merge ? "1" : "0");
}
