// SPDX-License-Identifier: GPL-2.0
/* Compaction of a node whose memory is mostly single pages with holes between them. */
#include <errno.h>
#include <stdio.h>

#include "counters.h"
#include "folio.h"
#include "sysfs.h"
#include "util.h"
#include "workload.h"

size_t compaction_bytes(int node)
{
	return (node_free_kb(node) * 1024 / 8 * 7) & ~(FOLIO_ALIGN - 1);
}

/* The kernel decides how many pages it moves, so its counters tell how many it moved. */
struct work run_compaction(const struct target *target, const struct options *options)
{
	struct counters before, after;
	struct work work = { 0 };
	uint64_t start;
	char path[80];

	(void)target;
	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/compact", options->from);
	counters_read(&before);
	start = clock_ns();
	if (!sysfs_write(path, "1"))
		die(errno == ENOENT ? EXIT_MISSING : EXIT_FAILED, "%s: %m (CONFIG_COMPACTION)", path);
	work.ns = clock_ns() - start;
	counters_read(&after);
	work.moved = counters_delta(&before, &after, "pgmigrate_success");
	work.failed = counters_delta(&before, &after, "pgmigrate_fail");
	return work;
}
