// SPDX-License-Identifier: GPL-2.0
#include "migrc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "quit.h"
#include "sysfile.h"

static void set(const char *name, const char *value)
{
	char path[sizeof(MIGRC_DIR) + 64];

	snprintf(path, sizeof(path), MIGRC_DIR "/%s", name);
	if (sysfile_set_until_exit(path, value))
		return;
	if (errno == ENOENT)
		quit(EXIT_MISSING, "no %s: this kernel defers no TLB flushes (CONFIG_MIGRC)", path);
	quit(errno == EINVAL ? EXIT_USAGE : EXIT_FAILED, "%s refuses '%s': %m", path, value);
}

void migrc_set(const struct migrc_wish *wish)
{
	char bytes[32];

	if (wish->max_bytes) {
		snprintf(bytes, sizeof(bytes), "%zu", wish->max_bytes);
		set("max_bytes", bytes);
	}
	if (wish->enabled >= 0)
		set("enabled", wish->enabled ? "1" : "0");
}

bool migrc_value(const char *name, uint64_t *value)
{
	char path[sizeof(MIGRC_DIR) + 64], text[32];

	snprintf(path, sizeof(path), MIGRC_DIR "/%s", name);
	if (!sysfile_read(path, text, sizeof(text)))
		return false;
	*value = strtoull(text, NULL, 10);
	return true;
}
