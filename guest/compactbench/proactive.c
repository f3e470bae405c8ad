// SPDX-License-Identifier: GPL-2.0
#include "proactive.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sysfs.h"
#include "util.h"

#define PROACTIVENESS "/proc/sys/vm/compaction_proactiveness"
/* The goal: half of the free memory in blocks of 2 MiB. Fragmented memory is far from it. */
#define GOAL "50"
#define POLL_NS 10000000
/* kcompactd is done if it moved nothing for so long. Before its goal is reached, it starts again after 500 ms. */
#define QUIET_NS UINT64_C(1000000000)

void proactive_forbid(void)
{
	if (!sysfs_set_until_exit(PROACTIVENESS, "0"))
		die(errno == ENOENT ? EXIT_MISSING : EXIT_FAILED, PROACTIVENESS ": %m (CONFIG_COMPACTION)");
}

/* The kernel's thread for a node, or 0. */
static pid_t find_kcompactd(int node)
{
	DIR *processes = opendir("/proc");
	char wanted[32], path[300], name[32];
	struct dirent *entry;
	pid_t found = 0;

	snprintf(wanted, sizeof(wanted), "kcompactd%d", node);
	while (!found && processes && (entry = readdir(processes))) {
		snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
		if (sysfs_read_line(path, name, sizeof(name)) && !strcmp(name, wanted))
			found = atoi(entry->d_name);
	}
	if (processes)
		closedir(processes);
	return found;
}

static pid_t pin_kcompactd(const struct options *options, cpu_set_t *before)
{
	pid_t thread = find_kcompactd(options->node);
	cpu_set_t one;

	if (!thread)
		die(EXIT_MISSING, "there is no kcompactd%d", options->node);
	CPU_ZERO(&one);
	CPU_SET(options->cpu, &one);
	if (sched_getaffinity(thread, sizeof(*before), before) || sched_setaffinity(thread, sizeof(one), &one))
		die(EXIT_FAILED, "kcompactd%d cannot run on CPU %d: %m", options->node, options->cpu);
	return thread;
}

/* Wait until kcompactd is done; returns the time of the last page that it moved, with *after as it was then. */
static uint64_t wait_until_quiet(const struct options *options, clockid_t clock, struct usage *after)
{
	uint64_t start = clock_ns(), last = start, now = start;
	static struct usage seen;

	usage_end(after, options->cpu, clock);
	while (now - last < QUIET_NS) {
		sleep_ns(POLL_NS);
		usage_end(&seen, options->cpu, clock);
		now = clock_ns();
		if (now - start > options->limit_s * UINT64_C(1000000000))
			die(EXIT_FAILED, "kcompactd still moves pages after %u s", options->limit_s);
		if (!counters_delta(&after->counters, &seen.counters, "pgmigrate_success"))
			continue;
		last = now;
		*after = seen;
	}
	return last;
}

uint64_t proactive_run(const struct options *options, struct usage *before, struct usage *after)
{
	uint64_t start, last;
	cpu_set_t cpus;
	pid_t thread = pin_kcompactd(options, &cpus);
	clockid_t clock;

	if (clock_getcpuclockid(thread, &clock))
		die(EXIT_FAILED, "kcompactd%d has no CPU clock", options->node);
	usage_begin(before, options->cpu, clock);
	start = clock_ns();
	if (!sysfs_write(PROACTIVENESS, GOAL))
		die(EXIT_FAILED, PROACTIVENESS ": %m");
	last = wait_until_quiet(options, clock, after);
	proactive_forbid();
	sched_setaffinity(thread, sizeof(cpus), &cpus);
	return last - start;
}
