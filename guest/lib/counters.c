// SPDX-License-Identifier: GPL-2.0
#include "counters.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "migration.h"
#include "sysfs.h"
#include "util.h"

/* Only kernels with CONFIG_DEBUG_TLBFLUSH have nr_tlb_*. */
static const char *const vmstat_names[] = {
	"nr_tlb_remote_flush", "nr_tlb_remote_flush_received", "nr_tlb_local_flush_all",
	"nr_tlb_local_flush_one", "pgmigrate_success", "pgmigrate_fail", "pgpromote_success",
	"pgdemote_kswapd", "pgdemote_direct", "pgdemote_khugepaged", "pgdemote_proactive",
	"compact_migrate_scanned", "compact_free_scanned", "compact_isolated", "compact_stall", "compact_fail",
	"compact_success", "compact_daemon_wake", "numa_hint_faults", "numa_pte_updates",
};

static void add(struct counters *counters, const char *prefix, const char *name, uint64_t value)
{
	size_t size = sizeof(counters->counter->name);

	if (counters->count == MAX_COUNTERS)
		die(EXIT_FAILED, "the kernel has more than %d counters", MAX_COUNTERS);
	if ((size_t)snprintf(counters->counter[counters->count].name, size, "%s%s", prefix, name) >= size)
		die(EXIT_FAILED, "a counter has a name as long as %s", name);
	counters->counter[counters->count++].value = value;
}

/* "TLB:   1   2   TLB shootdowns": a number for each CPU. */
static void read_shootdowns(struct counters *counters)
{
	FILE *file = fopen("/proc/interrupts", "re");
	char line[16384], *at = NULL, *end;
	uint64_t sum = 0;

	if (!file)
		return;
	while (!at && fgets(line, sizeof(line), file))
		at = strstr(line, "TLB:");
	fclose(file);
	if (!at)
		return;
	for (at += 4;; at = end) {
		uint64_t value = strtoull(at, &end, 10);

		if (end == at)
			break;
		sum += value;
	}
	add(counters, "", "ipis", sum);
}

static void read_vmstat(struct counters *counters)
{
	FILE *file = fopen("/proc/vmstat", "re");
	char name[64];
	uint64_t value;

	if (!file)
		die(EXIT_MISSING, "cannot read /proc/vmstat: %m");
	while (fscanf(file, "%63s %" SCNu64, name, &value) == 2)
		for (size_t i = 0; i < ARRAY_SIZE(vmstat_names); i++)
			if (!strcmp(vmstat_names[i], name))
				add(counters, "", name, value);
	fclose(file);
}

static void read_migrc(struct counters *counters)
{
	DIR *dir = opendir(MIGRC_DIR "/counters");
	struct dirent *entry;
	char path[sizeof(MIGRC_DIR) + 300], value[32];

	while (dir && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), MIGRC_DIR "/counters/%s", entry->d_name);
		if (entry->d_name[0] != '.' && sysfs_read_line(path, value, sizeof(value)))
			add(counters, "migrc_", entry->d_name, strtoull(value, NULL, 10));
	}
	if (dir)
		closedir(dir);
}

void counters_read(struct counters *counters)
{
	counters->count = 0;
	read_shootdowns(counters);
	read_vmstat(counters);
	read_migrc(counters);
}

static uint64_t value_of(const struct counters *counters, const char *name)
{
	for (size_t i = 0; i < counters->count; i++)
		if (!strcmp(counters->counter[i].name, name))
			return counters->counter[i].value;
	return 0;
}

uint64_t counters_delta(const struct counters *before, const struct counters *after, const char *name)
{
	return value_of(after, name) - value_of(before, name);
}

void counters_print(struct json *json, const char *prefix, const struct counters *before,
		    const struct counters *after)
{
	char key[64];

	for (size_t i = 0; i < after->count; i++) {
		const char *name = after->counter[i].name;

		snprintf(key, sizeof(key), "%s%s", prefix, name);
		json_int(json, key, counters_delta(before, after, name));
	}
}
