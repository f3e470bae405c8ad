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
#define NUMA_BALANCING	"../../../../proc/sys/kernel/numa_balancing"

static inline int read_file(const char *name, char *buf, size_t size)
{
	char path[256];
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), ROOT "%s", name);
	fd = open(path, O_RDONLY);
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
	char path[256];
	int fd, err = 0;

	snprintf(path, sizeof(path), ROOT "%s", name);
	fd = open(path, O_WRONLY);
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
	char before[256], after[256], *word;
	int err, restored = 0;

	ASSERT_EQ(read_file(v->name, before, sizeof(before)), 0);
	err = write_file(v->name, v->value);
	if (read_file(v->name, after, sizeof(after)))
		after[0] = '\0';
	if (strcmp(before, after)) {
		char saved[256];

		strcpy(saved, before);
		restored = write_file(v->name, strchr(saved, '[') ?
				      selected(saved) : saved);
	}
	EXPECT_EQ(restored, 0);
	EXPECT_EQ(err, v->accepted ? 0 : -EINVAL)
		TH_LOG("%s: '%s'", v->name, v->value);
	if (!v->accepted) {
		EXPECT_STREQ(before, after);
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
