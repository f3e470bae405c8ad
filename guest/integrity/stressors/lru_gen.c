// SPDX-License-Identifier: GPL-2.0
/* Switch between the two kinds of LRU lists, while folios are isolated from them and put back. */
#include "stressors.h"

#include <stddef.h>

#include "sysfs.h"

#define ENABLED "/sys/kernel/mm/lru_gen/enabled"

static const char *prepare(struct test_memory *mem)
{
	(void)mem;
	return sysfs_set_until_exit(ENABLED, "y") ? NULL : "no multi-generational LRU (CONFIG_LRU_GEN)";
}

static bool run_once(struct worker *worker)
{
	bool off = sysfs_write(ENABLED, "n");

	worker_pause(worker);
	return sysfs_write(ENABLED, "y") && off;
}

const struct stressor lru_gen_stressor = { .name = "lru_gen", .prepare = prepare, .run_once = run_once };
