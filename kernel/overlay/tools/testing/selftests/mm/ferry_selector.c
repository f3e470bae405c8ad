// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/kernel/mm/migration: every file reads and writes as Documentation/ABI/testing/
 * sysfs-kernel-mm-migration says, and a value that is refused changes nothing.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
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

/* The word in brackets. */
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

/* The list ends in a newline, has one word in brackets, and always off and kernel. */
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
	static const char * const bad[] = { "nobody", "", "kernel off", "KERNEL", "[off]" };
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

/* Write what must be refused to a file and see that it still reads as before. */
static void refused(struct __test_metadata *_metadata, const char *name,
		    const char *value)
{
	char before[256], after[256];

	ASSERT_EQ(read_file(name, before, sizeof(before)), 0);
	EXPECT_EQ(write_file(name, value), -EINVAL)
		TH_LOG("%s took '%s'", name, value);
	ASSERT_EQ(read_file(name, after, sizeof(after)), 0);
	EXPECT_STREQ(before, after);
}

/* Write what must be taken to a file, see that it reads so, and put back what it was. */
static void taken(struct __test_metadata *_metadata, const char *name,
		  const char *value)
{
	char before[256], after[256];

	ASSERT_EQ(read_file(name, before, sizeof(before)), 0);
	EXPECT_EQ(write_file(name, value), 0)
		TH_LOG("%s refused '%s'", name, value);
	ASSERT_EQ(read_file(name, after, sizeof(after)), 0);
	after[strcspn(after, "\n")] = '\0';
	EXPECT_STREQ(strchr(after, '[') ? selected(after) : after, value);
	EXPECT_EQ(write_file(name, strchr(before, '[') ? selected(before) : before), 0);
}

TEST_F(ferry, limits_refuse_bad_values)
{
	static const char * const names[] = {
		"min_bytes", "batch_max_bytes", "max_stall_us",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		refused(_metadata, names[i], "-1");
		refused(_metadata, names[i], "many");
		refused(_metadata, names[i], "99999999999999999999");
		refused(_metadata, names[i], "1073741825");
	}
	refused(_metadata, "batch_max_bytes", "0");
	refused(_metadata, "max_stall_us", "0");
}

TEST_F(ferry, limits_take_good_values)
{
	taken(_metadata, "min_bytes", "0");
	taken(_metadata, "min_bytes", "1073741824");
	taken(_metadata, "batch_max_bytes", "1073741824");
	taken(_metadata, "max_stall_us", "1");
	taken(_metadata, "max_stall_us", "1000000");
}

TEST_F(ferry, mtcopy_knobs)
{
	char value[256];

	if (read_file("mtcopy/threads", value, sizeof(value)))
		SKIP(return, "mtcopy is not loaded");
	refused(_metadata, "mtcopy/threads", "0");
	refused(_metadata, "mtcopy/threads", "65");
	refused(_metadata, "mtcopy/spread", "far");
	refused(_metadata, "mtcopy/stores", "slow");
	taken(_metadata, "mtcopy/threads", "64");
	taken(_metadata, "mtcopy/spread", "none");
	taken(_metadata, "mtcopy/stores", "streaming");
}

TEST_F(ferry, dcbm_knobs)
{
	char value[256];

	if (read_file("dcbm/channels", value, sizeof(value)))
		SKIP(return, "dcbm is not loaded");
	refused(_metadata, "dcbm/channels", "0");
	refused(_metadata, "dcbm/channels", "65");
	refused(_metadata, "dcbm/timeout_ms", "0");
	refused(_metadata, "dcbm/timeout_ms", "60001");
	refused(_metadata, "dcbm/verify", "maybe");
	refused(_metadata, "dcbm/offload", "never");
	taken(_metadata, "dcbm/channels", "64");
	taken(_metadata, "dcbm/timeout_ms", "60000");
	taken(_metadata, "dcbm/verify", "sampled");
	taken(_metadata, "dcbm/offload", "always");
}

TEST_F(ferry, migrc_knobs)
{
	char value[256];

	if (read_file("migrc/enabled", value, sizeof(value)))
		SKIP(return, "kernel without CONFIG_MIGRC");
	refused(_metadata, "migrc/enabled", "2");
	refused(_metadata, "migrc/max_bytes", "-1");
	refused(_metadata, "migrc/max_bytes", "0x1000");
	refused(_metadata, "migrc/max_bytes", "9999999999999999999");
	refused(_metadata, "migrc/max_age_ms", "0");
	refused(_metadata, "migrc/max_age_ms", "60001");
	taken(_metadata, "migrc/enabled", "1");
	taken(_metadata, "migrc/max_bytes", "0");
	taken(_metadata, "migrc/max_bytes", "1048576");
	taken(_metadata, "migrc/max_age_ms", "60000");
	EXPECT_EQ(write_file("migrc/drain", "1"), 0);
	EXPECT_EQ(write_file("migrc/drain", "0"), -EINVAL);
	EXPECT_EQ(write_file("migrc/quarantined_bytes", "0"), -EACCES);
	EXPECT_EQ(write_file("migrc/counters/folios", "0"), -EACCES);
}

TEST_F(ferry, counters_are_numbers)
{
	static const char * const names[] = {
		"batches", "folios", "bytes", "copy_ns", "fallbacks", "refused_kind",
		"refused_pinned", "refused_small", "refused_busy", "refused_migrator",
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
