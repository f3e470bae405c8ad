/* SPDX-License-Identifier: GPL-2.0 */
/* The files of /sys/kernel/mm/migration, for the selftests of its parts. */
#ifndef SELFTESTS_MM_FERRY_KNOBS_H
#define SELFTESTS_MM_FERRY_KNOBS_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "kselftest_harness.h"

#define ROOT	"/sys/kernel/mm/migration/"
#define NUMA_BALANCING	"/proc/sys/kernel/numa_balancing"

/* A file of ROOT, or any other by its absolute path. */
static inline int open_file(const char *name, int flags)
{
	char path[256];

	snprintf(path, sizeof(path), "%s%s", name[0] == '/' ? "" : ROOT, name);
	return open(path, flags);
}

static inline int read_file(const char *name, char *buf, size_t size)
{
	int fd = open_file(name, O_RDONLY);
	ssize_t len;

	if (fd < 0)
		return -errno;
	len = read(fd, buf, size - 1);
	close(fd);
	if (len < 0)
		return -EIO;
	buf[len] = '\0';
	return 0;
}

/* Return -1 on failure. */
static inline long long number(const char *name)
{
	char value[64];

	return read_file(name, value, sizeof(value)) ? -1 : atoll(value);
}

/* Return 0 or the negative errno of opening or writing. */
static inline int write_file(const char *name, const char *value)
{
	int fd = open_file(name, O_WRONLY), err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, value, strlen(value)) < 0)
		err = -errno;
	close(fd);
	return err;
}

/* Cut out the word in brackets. */
static inline const char *selected(char *list)
{
	char *word = strchr(list, '[');

	if (!word)
		return "";
	word[strcspn(word, "]")] = '\0';
	return word + 1;
}

/* A setting as it was before a test. */
struct saved {
	char value[256];
};

/*
 * Write a setting, and keep the old one. Return 0 or the negative errno. If the
 * old one cannot be read, nothing is written.
 */
static inline int change_file(const char *name, const char *value,
			      struct saved *saved)
{
	int err = read_file(name, saved->value, sizeof(saved->value));

	if (err) {
		saved->value[0] = '\0';
		return err;
	}
	return write_file(name, value);
}

/* Do nothing if change_file() was not called for @saved, or kept nothing. */
static inline int restore_file(const char *name, struct saved *saved)
{
	char *value = saved->value;

	if (!value[0])
		return 0;
	return write_file(name, strchr(value, '[') ? selected(value) : value);
}

/* The letter of a task's state in /proc, or 0. */
static inline char state_of(pid_t pid)
{
	char path[64], line[512], *state = NULL;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (!read_file(path, line, sizeof(line)))
		state = strrchr(line, ')');
	return state ? state[2] : 0;
}

/* A value for a file, and whether the file accepts it. */
struct value {
	const char *name;
	const char *value;
	bool accepted;
};

/* Write one value, and restore the old one before anything is checked. */
static inline void check_value(struct __test_metadata *_metadata,
			       const struct value *v)
{
	struct saved saved, before;
	char after[256], *word;
	int err, restored = 0;

	err = change_file(v->name, v->value, &saved);
	before = saved;
	ASSERT_NE(before.value[0], '\0');
	if (read_file(v->name, after, sizeof(after)))
		after[0] = '\0';
	if (strcmp(before.value, after))
		restored = restore_file(v->name, &saved);
	EXPECT_EQ(restored, 0);
	EXPECT_EQ(err, v->accepted ? 0 : -EINVAL)
		TH_LOG("%s: '%s'", v->name, v->value);
	if (!v->accepted) {
		EXPECT_STREQ(before.value, after);
		return;
	}
	after[strcspn(after, "\n")] = '\0';
	word = strchr(after, '[') ? (char *)selected(after) : after;
	EXPECT_STREQ(word, v->value);
}

static inline void check_values(struct __test_metadata *_metadata,
				const struct value *values, size_t nr)
{
	for (const struct value *v = values; v < values + nr; v++)
		check_value(_metadata, v);
}

#endif
