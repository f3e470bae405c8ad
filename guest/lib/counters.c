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

#define REASON_PREFIX "moved_for_"
#define REST_NS 5000000

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

void counters_read_dir(struct counters *counters, const char *prefix, const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	char file[512], value[32];

	while (dir && (entry = readdir(dir))) {
		snprintf(file, sizeof(file), "%s/%s", path, entry->d_name);
		if (entry->d_name[0] != '.' && sysfs_read_line(file, value, sizeof(value)))
			add(counters, prefix, entry->d_name, strtoull(value, NULL, 10));
	}
	if (dir)
		closedir(dir);
}

#define REASONS_DIR MIGRATION_DIR "/stats/reasons"

static void read_reasons(struct counters *counters)
{
	DIR *dir = opendir(REASONS_DIR);
	struct dirent *entry;
	char path[sizeof(REASONS_DIR) + 300], value[32];

	while (dir && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), REASONS_DIR "/%s/moved_pages", entry->d_name);
		if (entry->d_name[0] != '.' && sysfs_read_line(path, value, sizeof(value)))
			add(counters, REASON_PREFIX, entry->d_name, strtoull(value, NULL, 10));
	}
	if (dir)
		closedir(dir);
}

void counters_read(struct counters *counters)
{
	counters->count = 0;
	read_shootdowns(counters);
	read_vmstat(counters);
	read_reasons(counters);
	counters_read_dir(counters, "migrc_", MIGRC_DIR "/counters");
}

/* Whether the pages moved for each reason add up to all that moved; true if the kernel does not count by reason. */
static bool adds_up(const struct counters *counters)
{
	size_t length = strlen(REASON_PREFIX), reasons = 0;
	uint64_t sum = 0;

	for (size_t i = 0; i < counters->count; i++)
		if (!strncmp(counters->counter[i].name, REASON_PREFIX, length)) {
			sum += counters->counter[i].value;
			reasons++;
		}
	return !reasons || sum == counters_value(counters, "pgmigrate_success");
}

void counters_read_at_rest(struct counters *counters, unsigned int tries)
{
	counters_read(counters);
	while (!adds_up(counters) && --tries) {
		sleep_ns(REST_NS);
		counters_read(counters);
	}
}

uint64_t counters_value(const struct counters *counters, const char *name)
{
	for (size_t i = 0; i < counters->count; i++)
		if (!strcmp(counters->counter[i].name, name))
			return counters->counter[i].value;
	return 0;
}

uint64_t counters_delta(const struct counters *before, const struct counters *after, const char *name)
{
	return counters_value(after, name) - counters_value(before, name);
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
