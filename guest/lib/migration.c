// SPDX-License-Identifier: GPL-2.0
#include "migration.h"

#include <errno.h>
#include <limits.h>
#include <numaif.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profile.h"
#include "sysfs.h"
#include "util.h"

#define MIGRATOR_FILE MIGRATION_DIR "/migrator"
#define MAX_PATH 160

/* If a page fails, move_pages(2) stops, and does not write the status of its batch and of all pages behind it. */
#define NOT_WRITTEN INT_MIN

void moveset_add(struct moveset *set, char *base, size_t bytes, size_t step)
{
	for (size_t i = 0; i < bytes / step; i++)
		set->pages[set->count++] = base + i * step;
}

void moveset_retarget(struct moveset *set, char *base, size_t bytes, size_t step)
{
	set->count = 0;
	moveset_add(set, base, bytes, step);
}

void moveset_init(struct moveset *set, char *base, size_t bytes, size_t step)
{
	size_t count = bytes / step;

	set->pages = calloc(count, sizeof(*set->pages));
	set->nodes = calloc(count, sizeof(*set->nodes));
	set->status = calloc(count, sizeof(*set->status));
	if (!set->pages || !set->nodes || !set->status)
		die(EXIT_FAILED, "no memory for the addresses of %zu folios", count);
	moveset_retarget(set, base, bytes, step);
}

void moveset_free(struct moveset *set)
{
	free(set->pages);
	free(set->nodes);
	free(set->status);
	*set = (struct moveset){ 0 };
}

/* Some pages without a status have moved. */
static void ask_for_status(struct moveset *set)
{
	for (size_t i = 0, count; i < set->count; i += count + 1) {
		for (count = 0; i + count < set->count && set->status[i + count] == NOT_WRITTEN; count++)
			;
		if (count && move_pages(0, count, set->pages + i, NULL, set->status + i, 0))
			die(EXIT_FAILED, "move_pages without nodes: %m");
	}
}

static void count_status(const struct moveset *set, int node, struct move_result *result)
{
	for (size_t i = 0; i < set->count; i++) {
		int status = set->status[i];

		if (status == node) {
			result->moved++;
		} else if (!result->failed++) {
			result->first_failed = i;
			/* The number of a node means that the page has not left it. */
			result->first_error = status < 0 ? -status : EBUSY;
		}
	}
}

void moveset_shuffle(struct moveset *set)
{
	uint64_t random = 1;

	for (size_t i = set->count; i > 1; i--) {
		size_t other = xorshift64(&random) % i;
		void *page = set->pages[i - 1];

		set->pages[i - 1] = set->pages[other];
		set->pages[other] = page;
	}
}

struct move_result moveset_move(struct moveset *set, int node, int flags, size_t per_call)
{
	struct move_result result = { 0 };
	size_t step;

	for (size_t i = 0; i < set->count; i++) {
		set->nodes[i] = node;
		set->status[i] = NOT_WRITTEN;
	}
	result.at = clock_ns();
	PROFILE_BEGIN();
	for (size_t i = 0; i < set->count; i += step) {
		step = per_call && per_call < set->count - i ? per_call : set->count - i;
		/* A positive return counts the pages that did not move; their status says more. */
		if (move_pages(0, step, set->pages + i, set->nodes + i, set->status + i, flags) >= 0)
			continue;
		/* ENOENT: no page had to move, or none is mapped. ENOMEM: the node is full. */
		if (errno != ENOENT && errno != ENOMEM)
			die(EXIT_FAILED, "move_pages of %zu pages: %m", step);
	}
	PROFILE_END();
	result.ns = clock_ns() - result.at;
	ask_for_status(set);
	count_status(set, node, &result);
	return result;
}

void moveset_keep_failed(struct moveset *set, int node)
{
	size_t kept = 0;

	for (size_t i = 0; i < set->count; i++)
		if (set->status[i] != node)
			set->pages[kept++] = set->pages[i];
	set->count = kept;
}

bool migrators_list(struct migrators *migrators)
{
	char line[512], *rest = line, *word;

	*migrators = (struct migrators){ 0 };
	if (!sysfs_read_line(MIGRATOR_FILE, line, sizeof(line)))
		return false;
	while (migrators->count < MAX_MIGRATORS && (word = strtok_r(rest, " ", &rest))) {
		if (word[0] == '[')
			migrators->selected = migrators->count;
		sysfs_selected(word, migrators->names[migrators->count++], sizeof(migrators->names[0]));
	}
	return true;
}

int migrators_find(const struct migrators *migrators, const char *name)
{
	for (size_t i = 0; i < migrators->count; i++)
		if (!strcmp(migrators->names[i], name))
			return i;
	return -1;
}

bool migrator_select(const char *name)
{
	return sysfs_set_until_exit(MIGRATOR_FILE, name);
}

struct copied migrator_copied(void)
{
	struct migrators migrators;
	struct copied copied = { 0 };
	char path[MAX_PATH];
	const char *name;

	if (!migrators_list(&migrators))
		return copied;
	name = migrators.names[migrators.selected];
	snprintf(path, sizeof(path), MIGRATION_DIR "/stats/%s/bytes", name);
	copied.bytes = sysfs_number(path);
	snprintf(path, sizeof(path), MIGRATION_DIR "/stats/%s/copy_ns", name);
	copied.ns = sysfs_number(path);
	return copied;
}

uint64_t moved_in_runs(void)
{
	return sysfs_number(MIGRATION_DIR "/stats/runs/moved");
}

void migration_pages_read(struct migration_pages *pages, const char *reason)
{
	struct migrators migrators;
	char path[MAX_PATH];

	*pages = (struct migration_pages){ .in_runs = moved_in_runs() };
	migrators_list(&migrators);
	for (size_t i = 0; i < migrators.count; i++) {
		snprintf(path, sizeof(path), MIGRATION_DIR "/stats/%s/%s/bytes", migrators.names[i], reason);
		pages->copied[i] = sysfs_number(path) / PAGE_BYTES;
	}
}

void migration_pages_print(struct json *json, const struct migration_pages *before,
			   const struct migration_pages *after)
{
	struct migrators migrators;
	char key[64];

	if (!migrators_list(&migrators))
		return;
	json_text(json, "migrator", migrators.names[migrators.selected]);
	json_int(json, "runs", sysfs_number(MIGRATION_DIR "/runs"));
	json_int(json, "moved_in_runs", after->in_runs - before->in_runs);
	for (size_t i = 0; i < migrators.count; i++) {
		snprintf(key, sizeof(key), "copied_%s_pages", migrators.names[i]);
		json_int(json, key, after->copied[i] - before->copied[i]);
	}
}

static const char *migrc_path(char *path, const char *name)
{
	snprintf(path, MAX_PATH, MIGRC_DIR "/%s", name);
	return path;
}

bool migrc_present(void)
{
	return !access(MIGRC_DIR "/enabled", F_OK);
}

bool migrc_value(const char *name, uint64_t *value)
{
	char path[MAX_PATH], text[32];

	if (!sysfs_read_line(migrc_path(path, name), text, sizeof(text)))
		return false;
	*value = strtoull(text, NULL, 10);
	return true;
}

uint64_t migrc_number(const char *name)
{
	char path[MAX_PATH];

	return sysfs_number(migrc_path(path, name));
}

bool migrc_set(const char *knob, const char *value)
{
	char path[MAX_PATH];

	return sysfs_set_until_exit(migrc_path(path, knob), value);
}

bool migrc_write(const char *knob, const char *value)
{
	char path[MAX_PATH];

	return sysfs_write(migrc_path(path, knob), value);
}

uint64_t migrc_drain(void)
{
	uint64_t start;

	if (!migrc_number("quarantined_bytes"))
		return 0;
	start = clock_ns();
	if (!migrc_write("drain", "1"))
		die(EXIT_FAILED, MIGRC_DIR "/drain: %m");
	return clock_ns() - start;
}

static void require(const char *knob, size_t number)
{
	char value[32];

	snprintf(value, sizeof(value), "%zu", number);
	if (migrc_set(knob, value))
		return;
	if (errno == ENOENT)
		die(EXIT_MISSING, "no " MIGRC_DIR "/%s: this kernel defers no TLB flushes (CONFIG_MIGRC)", knob);
	die(errno == EINVAL ? EXIT_USAGE : EXIT_FAILED, MIGRC_DIR "/%s refuses '%s': %m", knob, value);
}

void migrc_apply(const struct migrc_config *config)
{
	if (config->max_bytes)
		require("max_bytes", config->max_bytes);
	if (config->max_age_ms)
		require("max_age_ms", config->max_age_ms);
	if (config->enabled >= 0)
		require("enabled", config->enabled);
}

void migrc_print(struct json *json)
{
	static const char *const names[] = {
		"enabled", "max_bytes", "max_age_ms", "peak_bytes", "quarantined_bytes",
	};
	char key[64];
	uint64_t value;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(key, sizeof(key), "migrc_%s", names[i]);
		if (migrc_value(names[i], &value))
			json_int(json, key, value);
	}
}
