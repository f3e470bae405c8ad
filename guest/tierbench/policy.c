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
	if (options->policy == POLICY_RECLAIM) {
		tiering_disable();
		tiering_enable_demotion();
		/*
		 * kswapd shall keep free what the tenants allocate at a time, so that none of them waits and demotes.
		 * On a node of 25 GiB the default factor is as many bytes as this one on a node of one.
		 */
		if (!sysfs_set_until_exit("/proc/sys/vm/watermark_scale_factor", "250"))
			die(EXIT_FAILED, "watermark_scale_factor: %m");
		return;
	}
	damon_require();
	tiering_disable();
	/* Reclaim would demote beside DAMON. */
	if (!sysfs_set_until_exit("/sys/kernel/mm/numa/demotion_enabled", "false"))
		die(EXIT_FAILED, "demotion_enabled: %m");
	damon_start(options->from, options->to);
}
