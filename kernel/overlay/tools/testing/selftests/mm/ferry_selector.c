// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/kernel/mm/migration: every file reads and writes as documented in
 * Documentation/ABI/testing/sysfs-kernel-mm-migration and its companions, and a
 * value that a file rejects changes nothing.
 */
#define _GNU_SOURCE
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

static int read_file(const char *name, char *buf, size_t size)
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

/* Return 0 or the negative errno of opening or writing. */
static int write_file(const char *name, const char *value)
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

FIXTURE(ferry) {
	char saved[256];
};

/* Cut out the word in brackets. */
static const char *selected(char *list)
{
	char *word = strchr(list, '[');

	if (!word)
		return "";
	word[strcspn(word, "]")] = '\0';
	return word + 1;
}

FIXTURE_SETUP(ferry)
{
	char list[256];

	if (geteuid())
		SKIP(return, "needs root");
	if (read_file("migrator", list, sizeof(list)))
		SKIP(return, "no " ROOT ": kernel without CONFIG_FERRY");
	snprintf(self->saved, sizeof(self->saved), "%s", selected(list));
}

FIXTURE_TEARDOWN(ferry)
{
	if (self->saved[0])
		write_file("migrator", self->saved);
}

/* The list ends in a newline and has off, kernel, and one word in brackets. */
TEST_F(ferry, list_has_one_selected)
{
	char list[256];

	ASSERT_EQ(read_file("migrator", list, sizeof(list)), 0);
	EXPECT_NE(strstr(list, "off"), NULL);
	EXPECT_NE(strstr(list, "kernel"), NULL);
	EXPECT_EQ(list[strlen(list) - 1], '\n');
	EXPECT_EQ(strchr(list, '['), strrchr(list, '['));
	EXPECT_NE(strchr(list, ']'), NULL);
}

TEST_F(ferry, select_and_off)
{
	char list[256];

	ASSERT_EQ(write_file("migrator", "kernel\n"), 0);
	ASSERT_EQ(read_file("migrator", list, sizeof(list)), 0);
	EXPECT_STREQ(selected(list), "kernel");
	ASSERT_EQ(write_file("migrator", "off"), 0);
	ASSERT_EQ(read_file("migrator", list, sizeof(list)), 0);
	EXPECT_STREQ(selected(list), "off");
}

TEST_F(ferry, unknown_migrator_changes_nothing)
{
	static const char * const bad[] = {
		"unknown", "", "kernel off", "KERNEL", "[off]",
	};
	char list[256];

	ASSERT_EQ(write_file("migrator", "kernel"), 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		/* Writing nothing never reaches the kernel. */
		if (bad[i][0])
			EXPECT_EQ(write_file("migrator", bad[i]), -EINVAL);
		ASSERT_EQ(read_file("migrator", list, sizeof(list)), 0);
		EXPECT_STREQ(selected(list), "kernel");
	}
}

/* A value for a file, and whether the file accepts it. */
struct value {
	const char *name;
	const char *value;
	bool accepted;
};

/*
 * Write each value, expect the file to read so, or as before if it rejects the
 * value, and restore an accepted one.
 */
static void check_values(struct __test_metadata *_metadata,
			 const struct value *values, size_t nr)
{
	char before[256], after[256];
	int err;

	for (const struct value *v = values; v < values + nr; v++) {
		ASSERT_EQ(read_file(v->name, before, sizeof(before)), 0);
		err = v->accepted ? 0 : -EINVAL;
		EXPECT_EQ(write_file(v->name, v->value), err)
			TH_LOG("%s: '%s'", v->name, v->value);
		ASSERT_EQ(read_file(v->name, after, sizeof(after)), 0);
		if (!v->accepted) {
			EXPECT_STREQ(before, after);
			continue;
		}
		after[strcspn(after, "\n")] = '\0';
		EXPECT_STREQ(strchr(after, '[') ? selected(after) : after,
			     v->value);
		EXPECT_EQ(write_file(v->name, strchr(before, '[') ?
				     selected(before) : before), 0);
	}
}

TEST_F(ferry, limits)
{
	static const struct value values[] = {
		{ "batch_min_bytes", "-1", false },
		{ "batch_min_bytes", "many", false },
		{ "batch_min_bytes", "99999999999999999999", false },
		{ "batch_min_bytes", "1073741825", false },
		{ "batch_max_bytes", "-1", false },
		{ "batch_max_bytes", "many", false },
		{ "batch_max_bytes", "99999999999999999999", false },
		{ "batch_max_bytes", "1073741825", false },
		{ "batch_max_bytes", "0", false },
		{ "batch_max_us", "-1", false },
		{ "batch_max_us", "many", false },
		{ "batch_max_us", "99999999999999999999", false },
		{ "batch_max_us", "1073741825", false },
		{ "batch_max_us", "0", false },
		{ "batch_min_bytes", "0", true },
		{ "batch_min_bytes", "1073741824", true },
		{ "batch_max_bytes", "1073741824", true },
		{ "batch_max_us", "1", true },
		{ "batch_max_us", "1000000", true },
	};

	check_values(_metadata, values, ARRAY_SIZE(values));
}

TEST_F(ferry, mtcopy_knobs)
{
	static const struct value values[] = {
		{ "mtcopy/threads", "0", false },
		{ "mtcopy/threads", "65", false },
		{ "mtcopy/threads", "64", true },
		{ "mtcopy/nontemporal", "slow", false },
		{ "mtcopy/nontemporal", "never", true },
		{ "mtcopy/nontemporal", "always", true },
		{ "mtcopy/nontemporal", "auto", true },
	};
	char value[256];

	if (read_file("mtcopy/threads", value, sizeof(value)))
		SKIP(return, "mtcopy is not loaded");
	check_values(_metadata, values, ARRAY_SIZE(values));
}

TEST_F(ferry, dcbm_knobs)
{
	static const struct value values[] = {
		{ "dcbm/channels", "0", false },
		{ "dcbm/channels", "65", false },
		{ "dcbm/channels", "64", true },
		{ "dcbm/timeout_ms", "0", false },
		{ "dcbm/timeout_ms", "60001", false },
		{ "dcbm/timeout_ms", "60000", true },
		{ "dcbm/verify", "maybe", false },
		{ "dcbm/verify", "sampled", false },
		{ "dcbm/verify", "never", false },
		{ "dcbm/verify", "auto", true },
		{ "dcbm/verify", "always", true },
	};
	char value[256];

	if (read_file("dcbm/channels", value, sizeof(value)))
		SKIP(return, "dcbm is not loaded");
	check_values(_metadata, values, ARRAY_SIZE(values));
}

TEST_F(ferry, migrc_knobs)
{
	static const struct value values[] = {
		{ "migrc/enabled", "2", false },
		{ "migrc/enabled", "1", true },
		{ "migrc/max_bytes", "-1", false },
		{ "migrc/max_bytes", "0x1000", false },
		{ "migrc/max_bytes", "9999999999999999999", false },
		{ "migrc/max_bytes", "0", true },
		{ "migrc/max_bytes", "1048576", true },
		{ "migrc/max_age_ms", "0", false },
		{ "migrc/max_age_ms", "60001", false },
		{ "migrc/max_age_ms", "60000", true },
	};
	char value[256];

	if (read_file("migrc/enabled", value, sizeof(value)))
		SKIP(return, "kernel without CONFIG_MIGRC");
	check_values(_metadata, values, ARRAY_SIZE(values));
	EXPECT_EQ(write_file("migrc/drain", "1"), 0);
	EXPECT_EQ(write_file("migrc/drain", "0"), -EINVAL);
	EXPECT_EQ(write_file("migrc/quarantined_bytes", "0"), -EACCES);
	EXPECT_EQ(write_file("migrc/counters/folios", "0"), -EACCES);
}

TEST_F(ferry, runs)
{
	static const struct value values[] = {
		{ "runs", "2", false },
		{ "runs", "-1", false },
		{ "runs", "on", false },
		{ "runs", "1", true },
		{ "runs", "0", true },
	};
	char value[256];

	if (read_file("runs", value, sizeof(value)))
		SKIP(return, "kernel without CONFIG_FERRY_RUNS");
	check_values(_metadata, values, ARRAY_SIZE(values));
	EXPECT_EQ(write_file("stats/runs/moved", "0"), -EACCES);
}

TEST_F(ferry, counters_are_numbers)
{
	static const char * const names[] = {
		"batches", "folios", "bytes", "copy_ns", "fallbacks",
		"skipped_unsupported", "skipped_pinned", "skipped_small",
		"skipped_no_buffer", "rejected",
	};
	char path[64], value[256], *end;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "stats/kernel/%s", names[i]);
		ASSERT_EQ(read_file(path, value, sizeof(value)), 0);
		strtoull(value, &end, 10);
		EXPECT_STREQ(end, "\n");
		EXPECT_EQ(write_file(path, "0"), -EACCES);
	}
}

TEST_F(ferry, only_root_writes)
{
	ASSERT_EQ(seteuid(65534), 0);
	EXPECT_EQ(write_file("migrator", "kernel"), -EACCES);
	EXPECT_EQ(write_file("batch_max_bytes", "33554432"), -EACCES);
	ASSERT_EQ(seteuid(0), 0);
}

TEST_HARNESS_MAIN
