// SPDX-License-Identifier: GPL-2.0
#include "migrc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "clock.h"
#include "quit.h"
#include "sysfile.h"

#define MOST_PATH 160

static const char *path_of(char *path, const char *name)
{
	snprintf(path, MOST_PATH, MIGRC_DIR "/%s", name);
	return path;
}

bool migrc_present(void)
{
	return !access(MIGRC_DIR "/enabled", F_OK);
}

bool migrc_value(const char *name, uint64_t *value)
{
	char path[MOST_PATH], text[32];

	if (!sysfile_read(path_of(path, name), text, sizeof(text)))
		return false;
	*value = strtoull(text, NULL, 10);
	return true;
}

uint64_t migrc_number(const char *name)
{
	uint64_t value;

	return migrc_value(name, &value) ? value : 0;
}

bool migrc_set(const char *knob, const char *value)
{
	char path[MOST_PATH];

	return sysfile_set_until_exit(path_of(path, knob), value);
}

bool migrc_write(const char *knob, const char *value)
{
	char path[MOST_PATH];

	return sysfile_write(path_of(path, knob), value);
}

uint64_t migrc_settle(void)
{
	uint64_t start;

	if (!migrc_number("quarantined_bytes"))
		return 0;
	start = clock_ns();
	if (!migrc_write("drain", "1"))
		quit(EXIT_FAILED, MIGRC_DIR "/drain: %m");
	return clock_ns() - start;
}

static void require(const char *knob, const char *value)
{
	if (migrc_set(knob, value))
		return;
	if (errno == ENOENT)
		quit(EXIT_MISSING, "no " MIGRC_DIR "/%s: this kernel defers no TLB flushes (CONFIG_MIGRC)", knob);
	quit(errno == EINVAL ? EXIT_USAGE : EXIT_FAILED, MIGRC_DIR "/%s refuses '%s': %m", knob, value);
}

static void require_number(const char *knob, size_t number)
{
	char text[32];

	snprintf(text, sizeof(text), "%zu", number);
	require(knob, text);
}

void migrc_grant(const struct migrc_wish *wish)
{
	if (wish->max_bytes)
		require_number("max_bytes", wish->max_bytes);
	if (wish->max_age_ms)
		require_number("max_age_ms", wish->max_age_ms);
	if (wish->enabled >= 0)
		require("enabled", wish->enabled ? "1" : "0");
}

void migrc_print(struct json *json)
{
	static const char *const names[] = {
		"enabled", "max_bytes", "max_age_ms", "peak_bytes", "quarantined_bytes",
	};
	static const char *const keys[] = {
		"migrc_enabled", "migrc_max_bytes", "migrc_max_age_ms", "migrc_peak_bytes",
		"migrc_quarantined_bytes",
	};
	uint64_t value;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (migrc_value(names[i], &value))
			json_int(json, keys[i], value);
}
