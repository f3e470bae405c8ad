// SPDX-License-Identifier: GPL-2.0
/* Hotplug of CPUs and memory. */
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
static uint64_t block = UINT64_MAX;	/* the memory block that goes offline */
static uint64_t block_pages;
static const char *block_state;		/* to restore at the end: "online" or "online_movable" */

static void fixture_setup_cpu(struct fixture *fx)
{
	snprintf(cpu_file, sizeof(cpu_file), "/sys/devices/system/cpu/cpu%d/online", fx->cpus[READER_CPU]);
	if (access(cpu_file, W_OK))
		test_skip(fx, "CPU %d cannot be taken offline (CONFIG_HOTPLUG_CPU)", fx->cpus[READER_CPU]);
	fixture_map_anon(fx, fx->pages);
}

static bool trigger_cpu(struct fixture *fx)
{
	bool offline = sysfs_write(cpu_file, "0");

	if (!offline)
		test_error(fx, "%s: %s", cpu_file, strerror(errno));
	fixture_check(fx, EXPECT_OLD);
	trigger_store(fx);
	fixture_check(fx, EXPECT_NEW);
	if (!sysfs_write(cpu_file, "1") || !reader_pin(fx->reader))
		test_error(fx, "CPU %d does not come online: %s", fx->cpus[READER_CPU], strerror(errno));
	return offline;
}

static void fixture_teardown_cpu(struct fixture *fx)
{
	(void)fx;
	sysfs_write(cpu_file, "1");
}

static bool set_state(uint64_t number, const char *state)
{
	char path[96];

	snprintf(path, sizeof(path), MEMORY "/memory%" PRIu64 "/state", number);
	return sysfs_write(path, state);
}

/* Online a block again as movable memory: it then holds nothing else, so that it can go offline again. */
static bool make_movable(uint64_t number)
{
	char path[96], zone[64];
	bool movable;

	snprintf(path, sizeof(path), MEMORY "/memory%" PRIu64 "/valid_zones", number);
	movable = sysfs_read_line(path, zone, sizeof(zone)) && !strcmp(zone, "Movable");
	block_state = movable ? "online_movable" : "online";
	return set_state(number, "offline") && set_state(number, "online_movable");
}

/* Find a block of a node's memory that can go offline. */
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

static void fixture_setup_memory(struct fixture *fx)
{
	char bytes[32];

	if (!sysfs_read_line(MEMORY "/block_size_bytes", bytes, sizeof(bytes)))
		test_skip(fx, "no memory hotplug (CONFIG_MEMORY_HOTREMOVE)");
	block_pages = strtoull(bytes, NULL, 16) / PAGE_BYTES;
	/* Which block can go offline must not depend on migrc. */
	if (!fx->options->off)
		migrc_write("enabled", "0");
	find_block(fx->options->nodes[1]);
	if (!fx->options->off)
		migrc_write("enabled", "1");
	if (block == UINT64_MAX)
		test_skip(fx, "no block of node %d's memory can be taken offline", fx->options->nodes[1]);
	fixture_map_anon(fx, fx->pages);
}

static void run_memory(struct fixture *fx)
{
	bool in_block;

	/* Allocate on the node whose only movable zone is the block. */
	fixture_remap_anon(fx, MADV_NOHUGEPAGE);
	node_bind(fx->base, fixture_bytes(fx), fx->options->nodes[1]);
	setup_forked(fx);
	in_block = folio_frame(fx->base) / block_pages == block;
	fixture_fill_tlb(fx);
	fixture_move(fx);
	fx->report->deferred += fx->was_deferred;
	if (!set_state(block, "offline"))
		test_error(fx, "memory block %" PRIu64 " does not go offline: %s", block, strerror(errno));
	fixture_check(fx, EXPECT_OLD);
	trigger_store(fx);
	fixture_check(fx, EXPECT_NEW);
	if (!set_state(block, "online_movable"))
		test_error(fx, "memory block %" PRIu64 " does not come online: %s", block, strerror(errno));
	fx->report->triggered += in_block;
}

static void fixture_teardown_memory(struct fixture *fx)
{
	munmap(fx->base, fixture_bytes(fx));
	if (set_state(block, "offline"))
		set_state(block, block_state);
}

const struct test hotplug_tests[] = {
	{
		.name = "cpu_hotplug", .description = "the reader's CPU goes offline, stores, the CPU comes online",
		.machine = true, .expect = EXPECT_NEW, .min_deferred = 50, .min_triggered = 100,
		.fixture_setup = fixture_setup_cpu, .fixture_teardown = fixture_teardown_cpu,
		.setup = setup_forked, .trigger = trigger_cpu,
	}, {
		.name = "hot_unplug", .description = "the memory block of the old frames goes offline, then online",
		.machine = true, .min_deferred = 50, .min_triggered = 50,
		.fixture_setup = fixture_setup_memory, .fixture_teardown = fixture_teardown_memory,
		.run_round = run_memory,
	},
	{ 0 }
};
