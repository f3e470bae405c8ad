// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/kernel/mm/migration/migrc: every file reads and writes as documented in
 * Documentation/ABI/testing/sysfs-kernel-mm-migration-migrc.
 */
#define _GNU_SOURCE
#include "ferry_knobs.h"

TEST(knobs)
{
	static const struct value values[] = {
		{ "migrc/enabled", "2", false },
		{ "migrc/enabled", "10", false },
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

	if (geteuid())
		SKIP(return, "needs root");
	if (read_file("migrc/enabled", value, sizeof(value)))
		SKIP(return, "kernel without CONFIG_MIGRC");
	check_values(_metadata, values, ARRAY_SIZE(values));
	EXPECT_EQ(write_file("migrc/drain", "1"), 0);
	EXPECT_EQ(write_file("migrc/drain", "0"), -EINVAL);
	EXPECT_EQ(write_file("migrc/quarantined_bytes", "0"), -EACCES);
	EXPECT_EQ(write_file("migrc/counters/folios", "0"), -EACCES);
}

TEST_HARNESS_MAIN
