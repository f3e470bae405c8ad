// SPDX-License-Identifier: GPL-2.0
/* Memory and CPUs that go and come back. */
#include "fixture.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "folio.h"
#include "sysfs.h"
#include "util.h"

#define MEMORY "/sys/devices/system/memory"

static char cpu_file[64];
static uint64_t block = UINT64_MAX;	/* the memory block that can be taken offline */
static uint64_t block_pages;
static const char *block_was;		/* what makes it again what it was: "online" or "online_movable" */

static void open_cpu(struct bed *bed)
{
	snprintf(cpu_file, sizeof(cpu_file), "/sys/devices/system/cpu/cpu%d/online", bed->cpus[3]);
	if (access(cpu_file, W_OK))
		bed_skip(bed, "CPU %d cannot be taken offline (CONFIG_HOTPLUG_CPU)", bed->cpus[3]);
	bed_map_anon(bed, bed->pages);
}

static void arrange_forked(struct bed *bed)
{
	bed_write(bed->base, bed->pages, bed->old);
	bed_fork_once(bed);
}

static bool act_cpu(struct bed *bed)
{
	bool away = sysfs_write(cpu_file, "0");

	if (!away)
		bed_broken(bed, "%s: %s", cpu_file, strerror(errno));
	bed_judge(bed, SEES_OLD);
	bed_write(bed->base, bed->pages, bed->fresh);
	bed_judge(bed, SEES_NEW);
	if (!sysfs_write(cpu_file, "1") || !reader_pin(bed->reader))
		bed_broken(bed, "CPU %d does not come back: %s", bed->cpus[3], strerror(errno));
	return away;
}

static void close_cpu(struct bed *bed)
{
	(void)bed;
	sysfs_write(cpu_file, "1");
}

static bool set_state(uint64_t number, const char *state)
{
	char path[96];

	snprintf(path, sizeof(path), MEMORY "/memory%" PRIu64 "/state", number);
	return sysfs_write(path, state);
}

static bool is_movable(uint64_t number)
{
	char path[96], zone[64];

	snprintf(path, sizeof(path), MEMORY "/memory%" PRIu64 "/valid_zones", number);
	return sysfs_read_line(path, zone, sizeof(zone)) && !strcmp(zone, "Movable");
}

/* Once it has been offline it can hold movable memory only, and so can go again. */
static bool make_movable(uint64_t number)
{
	block_was = is_movable(number) ? "online_movable" : "online";
	return set_state(number, "offline") && set_state(number, "online_movable");
}

static void find_block(int node)
{
	char path[64];
	struct dirent *entry;
	uint64_t number;
	DIR *dir;

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d", node);
	dir = opendir(path);
	while (dir && block == UINT64_MAX && (entry = readdir(dir)))
		if (sscanf(entry->d_name, "memory%" SCNu64, &number) == 1 && make_movable(number))
			block = number;
	if (dir)
		closedir(dir);
}

static void open_memory(struct bed *bed)
{
	char bytes[32];

	if (!sysfs_read_line(MEMORY "/block_size_bytes", bytes, sizeof(bytes)))
		bed_skip(bed, "no memory hotplug (CONFIG_MEMORY_HOTREMOVE)");
	block_pages = strtoull(bytes, NULL, 16) / PAGE_BYTES;
	/* As it is without migrc. */
	if (!bed->options->off)
		migrc_write("enabled", "0");
	find_block(bed->options->nodes[1]);
	if (!bed->options->off)
		migrc_write("enabled", "1");
	if (block == UINT64_MAX)
		bed_skip(bed, "no block of node %d's memory can be taken offline", bed->options->nodes[1]);
	bed_map_anon(bed, bed->pages);
}

static bool in_block(const struct bed *bed)
{
	return folio_frame(bed->base) / block_pages == block;
}

/* On the node whose only movable zone is the block. */
static void place(struct bed *bed)
{
	size_t bytes = bed->pages * PAGE_BYTES;

	if (mmap(bed->base, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
	    MAP_FAILED)
		die(EXIT_FAILED, "no memory: %m");
	madvise(bed->base, bytes, MADV_NOHUGEPAGE);
	node_bind(bed->base, bytes, bed->options->nodes[1]);
	arrange_forked(bed);
}

static void round_memory(struct bed *bed)
{
	bool placed;

	place(bed);
	placed = in_block(bed);
	bed_touch(bed);
	bed_move(bed);
	bed->report->deferred += bed->was_deferred;
	if (!set_state(block, "offline"))
		bed_broken(bed, "memory block %" PRIu64 " does not go any more: %s", block, strerror(errno));
	bed_judge(bed, SEES_OLD);
	bed_write(bed->base, bed->pages, bed->fresh);
	bed_judge(bed, SEES_NEW);
	if (!set_state(block, "online_movable"))
		bed_broken(bed, "memory block %" PRIu64 " does not come back: %s", block, strerror(errno));
	bed->report->acted += placed;
}

static void close_memory(struct bed *bed)
{
	munmap(bed->base, bed->pages * PAGE_BYTES);
	if (set_state(block, "offline"))
		set_state(block, block_was);
}

const struct event hotplug_events[] = {
	{
		.name = "cpu_hotplug", .what = "the reader's CPU goes offline; stores; it comes back",
		.machine = true,
		.sees = SEES_NEW, .deferred = 50, .acted = 100,
		.open = open_cpu, .arrange = arrange_forked, .act = act_cpu, .close = close_cpu,
	}, {
		.name = "hot_unplug", .what = "the memory block that the pages have left goes offline and comes back",
		.machine = true,
		.deferred = 50, .acted = 50,
		.open = open_memory, .round = round_memory, .close = close_memory,
	},
	{ 0 }
};
