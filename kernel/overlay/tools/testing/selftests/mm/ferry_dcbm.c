// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/kernel/mm/migration/dcbm: every file reads and writes as documented in
 * Documentation/ABI/testing/sysfs-kernel-mm-migration-dcbm.
 */
#define _GNU_SOURCE
#include "ferry_knobs.h"

TEST(knobs)
{
	static const struct value values[] = {
		{ "dcbm/channels", "0", false },
		{ "dcbm/channels", "65", false },
		{ "dcbm/channels", "64", true },
		{ "dcbm/timeout_ms", "-1", false },
		{ "dcbm/timeout_ms", "20001", false },
		{ "dcbm/timeout_ms", "20000", true },
		{ "dcbm/timeout_ms", "0", true },
		{ "dcbm/verify", "maybe", false },
		{ "dcbm/verify", "sampled", false },
		{ "dcbm/verify", "never", false },
		{ "dcbm/verify", "auto", true },
		{ "dcbm/verify", "always", true },
	};
	char value[256];

	if (geteuid())
		SKIP(return, "needs root");
	if (read_file("dcbm/channels", value, sizeof(value)))
		SKIP(return, "dcbm is not loaded");
	check_values(_metadata, values, ARRAY_SIZE(values));
}

TEST_HARNESS_MAIN
