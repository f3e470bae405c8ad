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

/* nr_tlb_*: of kernels with CONFIG_DEBUG_TLBFLUSH. */
static const char *const vmstat_names[] = {
	"nr_tlb_remote_flush", "nr_tlb_remote_flush_received", "nr_tlb_local_flush_all",
	"nr_tlb_local_flush_one", "pgmigrate_success", "pgmigrate_fail", "pgpromote_success",
	"pgdemote_kswapd", "pgdemote_direct", "pgdemote_khugepaged", "pgdemote_proactive",
	"compact_migrate_scanned", "compact_isolated", "numa_hint_faults", "numa_pte_updates",
};

static void add(struct counters *events, const char *prefix, const char *name, uint64_t value)
{
	size_t size = sizeof(events->event->name);

	if (events->count == MOST_EVENTS)
		die(EXIT_FAILED, "the kernel counts more than %d kinds of events", MOST_EVENTS);
	if ((size_t)snprintf(events->event[events->count].name, size, "%s%s", prefix, name) >= size)
		die(EXIT_FAILED, "a counter has a name as long as %s", name);
	events->event[events->count++].value = value;
}

/* "TLB:   1   2   TLB shootdowns": a number for each CPU. */
static bool read_shootdowns(uint64_t *sum)
{
	FILE *file = fopen("/proc/interrupts", "re");
	char line[16384], *at = NULL, *end;

	if (!file)
		return false;
	while (!at && fgets(line, sizeof(line), file))
		at = strstr(line, "TLB:");
	fclose(file);
	if (!at)
		return false;
	*sum = 0;
	for (at += 4;; at = end) {
		uint64_t value = strtoull(at, &end, 10);

		if (end == at)
			return true;
		*sum += value;
	}
}

static bool is_wanted(const char *name)
{
	for (size_t i = 0; i < sizeof(vmstat_names) / sizeof(*vmstat_names); i++)
		if (!strcmp(vmstat_names[i], name))
			return true;
	return false;
}

static void read_vmstat(struct counters *events)
{
	FILE *file = fopen("/proc/vmstat", "re");
	char name[64];
	uint64_t value;

	if (!file)
		die(EXIT_MISSING, "cannot read /proc/vmstat: %m");
	while (fscanf(file, "%63s %" SCNu64, name, &value) == 2)
		if (is_wanted(name))
			add(events, "", name, value);
	fclose(file);
}

static void read_migrc(struct counters *events)
{
	DIR *dir = opendir(MIGRC_DIR "/counters");
	struct dirent *entry;
	char path[sizeof(MIGRC_DIR) + 300], value[32];

	while (dir && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), MIGRC_DIR "/counters/%s", entry->d_name);
		if (entry->d_name[0] != '.' && sysfs_read(path, value, sizeof(value)))
			add(events, "migrc_", entry->d_name, strtoull(value, NULL, 10));
	}
	if (dir)
		closedir(dir);
}

void counters_read(struct counters *events)
{
	uint64_t shootdowns;

	events->count = 0;
	if (read_shootdowns(&shootdowns))
		add(events, "", "ipis", shootdowns);
	read_vmstat(events);
	read_migrc(events);
}

static uint64_t value_of(const struct counters *events, const char *name)
{
	for (size_t i = 0; i < events->count; i++)
		if (!strcmp(events->event[i].name, name))
			return events->event[i].value;
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
		const char *name = after->event[i].name;

		snprintf(key, sizeof(key), "%s%s", prefix, name);
		json_int(json, key, counters_delta(before, after, name));
	}
}
