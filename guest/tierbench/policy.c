// SPDX-License-Identifier: GPL-2.0
#include "policy.h"

#include "damon.h"
#include "sysfs.h"
#include "tiering.h"
#include "util.h"

/* A tenth of the kernel's own interval, because a guest has minutes where a machine has hours. */
#define SCAN_MS 100

void policy_apply(const struct options *options)
{
	tiering_require(options->from, options->to);
	if (options->policy == POLICY_NUMAB) {
		tiering_enable(SCAN_MS);
		return;
	}
	damon_require();
	tiering_disable();
	/* Reclaim would demote beside DAMON. */
	if (!sysfs_set_until_exit("/sys/kernel/mm/numa/demotion_enabled", "false"))
		die(EXIT_FAILED, "demotion_enabled: %m");
	damon_start(options->from, options->to);
}
