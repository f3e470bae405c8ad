// SPDX-License-Identifier: GPL-2.0
#include "usage.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "util.h"

/* "cpu3 user nice system idle iowait irq softirq ..." */
static void read_cpu(struct usage *usage, int cpu)
{
	uint64_t user, nice, system, idle, iowait, irq, softirq;
	FILE *file = fopen("/proc/stat", "re");
	char line[512];
	int number;

	if (!file)
		die(EXIT_MISSING, "cannot read /proc/stat: %m");
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "cpu%d %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64,
			   &number, &user, &nice, &system, &idle, &iowait, &irq, &softirq) != 8 || number != cpu)
			continue;
		usage->user = user + nice;
		usage->system = system + irq + softirq;
		usage->idle = idle + iowait;
		fclose(file);
		return;
	}
	die(EXIT_MISSING, "--cpu: /proc/stat has no CPU %d", cpu);
}

static uint64_t time_of(clockid_t thread)
{
	struct timespec time;

	if (clock_gettime(thread, &time))
		die(EXIT_FAILED, "cannot read the CPU time of the thread that compacts: %m");
	return time.tv_sec * UINT64_C(1000000000) + time.tv_nsec;
}

void usage_begin(struct usage *usage, int cpu, clockid_t thread)
{
	*usage = (struct usage){ 0 };
	counters_read(&usage->counters);
	migration_pages_read(&usage->pages, "compaction");
	read_cpu(usage, cpu);
	usage->thread_ns = time_of(thread);
}

void usage_end(struct usage *usage, int cpu, clockid_t thread)
{
	*usage = (struct usage){ .thread_ns = time_of(thread) };
	read_cpu(usage, cpu);
	counters_read(&usage->counters);
	migration_pages_read(&usage->pages, "compaction");
}

static void print_ms(struct json *json, const char *key, uint64_t ticks)
{
	json_int(json, key, ticks * 1000 / sysconf(_SC_CLK_TCK));
}

void usage_print(struct json *json, const struct usage *before, const struct usage *after)
{
	print_ms(json, "user_ms", after->user - before->user);
	print_ms(json, "system_ms", after->system - before->system);
	print_ms(json, "idle_ms", after->idle - before->idle);
	json_int(json, "thread_ns", after->thread_ns - before->thread_ns);
	counters_print(json, "", &before->counters, &after->counters);
	migration_pages_print(json, &before->pages, &after->pages);
}
