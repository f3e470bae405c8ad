// SPDX-License-Identifier: GPL-2.0
/*
 * Write random values to all control files of migration: those that a file accepts can be read back, and those that it
 * rejects, with EINVAL, change nothing.
 */
#include "stressors.h"

#include <errno.h>
#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../report.h"
#include "folio.h"
#include "migration.h"
#include "sysfs.h"

#define MAX_FILES 128
#define TEXT 512

struct control_file {
	pthread_mutex_t lock;	/* one writer at a time, so that a value that was written can be read back */
	char path[256];
	char original[64];	/* "" for a file that can only be written */
};

static struct control_file files[MAX_FILES];
static size_t file_count;

static int add_file(const char *path, const struct stat *stat, int type, struct FTW *where)
{
	struct control_file *file = &files[file_count];
	char text[TEXT];

	(void)where;
	if (type != FTW_F || !(stat->st_mode & 0222))
		return 0;
	if (file_count == MAX_FILES)
		die(EXIT_FAILED, "more than %u control files", MAX_FILES);
	pthread_mutex_init(&file->lock, NULL);
	snprintf(file->path, sizeof(file->path), "%s", path);
	if (stat->st_mode & 0444 && sysfs_read_line(path, text, sizeof(text)))
		sysfs_selected(text, file->original, sizeof(file->original));
	file_count++;
	return 0;
}

static const char *prepare(struct test_memory *mem)
{
	(void)mem;
	if (nftw(MIGRATION_DIR, add_file, 16, FTW_PHYS) || !file_count)
		die(EXIT_MISSING, "--control: no control file below " MIGRATION_DIR " (CONFIG_FERRY)");
	return NULL;
}

static void random_number(struct worker *worker, const struct control_file *file, char *value, size_t size)
{
	uint64_t number = worker_random(worker, UINT32_MAX) >> worker_random(worker, 32);

	/* With a low limit the movers would sleep longer than the run. */
	if (strstr(file->path, "/max_bytes_per_s"))
		number += UINT64_C(64) << 20;
	/* That of migrc is kept in pages. */
	if (strstr(file->path, "bytes"))
		number -= number % PAGE_BYTES;
	if (worker_random(worker, 4))
		snprintf(value, size, "%llu", (unsigned long long)number);
	else
		snprintf(value, size, "%s", file->original);
}

/* One of the words of "a [b] c". */
static void random_word(struct worker *worker, const char *list, char *value, size_t size)
{
	char text[TEXT], *words[64], *rest = text;
	size_t count = 0;

	snprintf(text, sizeof(text), "%s", list);
	while (count < 64 && (words[count] = strsep(&rest, " []")))
		count += words[count][0] != '\0';
	snprintf(value, size, "%s", words[worker_random(worker, count)]);
}

static const char *const invalid[] = {
	"-1", "word", "99999999999999999999", "1 2", "[off]", "0x10", "off kernel", " ",
};

/* What a write of `value` must not do, or NULL. */
static const char *fault(const struct control_file *file, const char *value, bool valid, const char *before)
{
	bool written = sysfs_write(file->path, value);
	int error = errno;
	char after[TEXT], now[64];

	if (!sysfs_read_line(file->path, after, sizeof(after)))
		return "cannot be read";
	if (!written && strcmp(before, after))
		return "changed though the value was rejected";
	sysfs_selected(after, now, sizeof(now));
	if (written)
		return valid ? strcmp(now, value) ? "does not have the value" : NULL : "accepts the value";
	/* A migrator may lack its device. A number may be out of bounds. */
	if (error == ENODEV && strstr(file->path, "migrator"))
		return NULL;
	if (error != EINVAL)
		return "rejects the value with another error than EINVAL";
	return valid && strchr(before, '[') ? "rejects a word that it lists" : NULL;
}

static bool write_value(struct worker *worker, struct control_file *file)
{
	bool valid = worker_random(worker, 4);
	char before[TEXT], value[64];
	const char *wrong;

	if (!file->original[0])
		return sysfs_write(file->path, "1");
	if (!sysfs_read_line(file->path, before, sizeof(before)))
		return false;
	if (!valid)
		snprintf(value, sizeof(value), "%s", invalid[worker_random(worker, sizeof(invalid) / sizeof(*invalid))]);
	else if (strchr(before, '['))
		random_word(worker, before, value, sizeof(value));
	else
		random_number(worker, file, value, sizeof(value));
	wrong = fault(file, value, valid, before);
	if (wrong)
		report_broken(worker->mem, "control", "%s, '%s' before, '%s' written: it %s", file->path, before, value,
			      wrong);
	return !wrong;
}

static bool write_random(struct worker *worker)
{
	struct control_file *file = &files[worker_random(worker, file_count)];
	bool done;

	pthread_mutex_lock(&file->lock);
	done = write_value(worker, file);
	pthread_mutex_unlock(&file->lock);
	return done;
}

static void restore(struct test_memory *mem)
{
	for (size_t i = 0; i < file_count; i++)
		if (files[i].original[0] && !sysfs_write(files[i].path, files[i].original))
			report_broken(mem, "control", "%s cannot be restored to '%s': %m", files[i].path,
				      files[i].original);
}

const struct stressor control_stressor = {
	.name = "control", .prepare = prepare, .run_once = write_random, .finish = restore, .many = true,
};
