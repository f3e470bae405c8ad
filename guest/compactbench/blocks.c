// SPDX-License-Identifier: GPL-2.0
#include "blocks.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "sysfs.h"
#include "util.h"

#define DIR "/sys/kernel/debug/alloc_blocks"

void blocks_require(void)
{
	if (access(DIR "/allocate", W_OK))
		die(EXIT_MISSING, "no " DIR ": %m (load the module alloc_blocks)");
}

static struct blocks write_order(const char *file, int node, unsigned int order, uint64_t count)
{
	struct blocks blocks;
	char text[64];

	snprintf(text, sizeof(text), "%d %u %" PRIu64, node, order, count);
	if (!sysfs_write(file, text))
		die(EXIT_FAILED, "%s refuses '%s': %m", file, text);
	if (!sysfs_read_line(DIR "/result", text, sizeof(text)) ||
	    sscanf(text, "%" SCNu64 " %" SCNu64, &blocks.got, &blocks.ns) != 2)
		die(EXIT_FAILED, DIR "/result: %m");
	return blocks;
}

struct blocks blocks_allocate(int node, unsigned int order, uint64_t count)
{
	return write_order(DIR "/allocate", node, order, count);
}

struct blocks blocks_take(int node, unsigned int order)
{
	return write_order(DIR "/take", node, order, LONG_MAX);
}

void blocks_forget_skipped(int node)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", node);
	if (!sysfs_write(DIR "/forget", text))
		die(EXIT_FAILED, DIR "/forget: %m");
}

void blocks_free(void)
{
	if (!sysfs_write(DIR "/free", "1"))
		die(EXIT_FAILED, DIR "/free: %m");
}
