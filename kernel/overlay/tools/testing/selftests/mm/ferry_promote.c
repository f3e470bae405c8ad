// SPDX-License-Identifier: GPL-2.0
/*
 * NUMA balancing migrates folios in batches if a migrator is selected for it:
 * all of them arrive, with their content, and share batches. The scheduler
 * counts them as migrated for the task.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "ferry_knobs.h"

#define BYTES		(8UL << 20)
#define MPOL_MF_MOVE	2
#define BALANCING	"/proc/sys/kernel/numa_balancing"
#define SCAN		"/sys/kernel/debug/sched/numa_balancing/"
#define STATS		"stats/mtcopy/numa_misplaced/"
#define SECONDS		60

static const char * const scan_files[] = {
	SCAN "scan_delay_ms", SCAN "scan_period_min_ms",
	SCAN "scan_period_max_ms",
};

static int swap_number(const char *path, int value)
{
	FILE *file = fopen(path, "r+");
	int old = -1;

	if (!file)
		return -1;
	if (fscanf(file, "%d", &old) != 1)
		old = -1;
	rewind(file);
	fprintf(file, "%d", value);
	if (fclose(file))
		return -1;
	return old;
}

static long long stat(const char *name)
{
	char path[64], value[64];

	snprintf(path, sizeof(path), STATS "%s", name);
	return read_file(path, value, sizeof(value)) ? -1 : atoll(value);
}

/* As the scheduler counts them; -1 if it does not. */
static long long migrated_for_task(void)
{
	FILE *file = fopen("/proc/self/sched", "r");
	long long pages = -1;
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, "numa_pages_migrated", 19))
			pages = atoll(strchr(line, ':') + 1);
	if (file)
		fclose(file);
	return pages;
}

/* Ask for the node of each page, or move the pages to a node. */
static size_t count_on(char *memory, int node, bool move)
{
	size_t nr = BYTES / 4096, there = 0;
	static void *pages[BYTES / 4096];
	static int nodes[BYTES / 4096], status[BYTES / 4096];

	for (size_t i = 0; i < nr; i++) {
		pages[i] = memory + i * 4096;
		nodes[i] = node;
	}
	syscall(SYS_move_pages, 0, nr, pages, move ? nodes : NULL, status,
		move ? MPOL_MF_MOVE : 0);
	for (size_t i = 0; i < nr; i++)
		there += status[i] == node;
	return there;
}

FIXTURE(promote) {
	char *memory;
	int balancing;
	int scan[3];
};

FIXTURE_SETUP(promote)
{
	cpu_set_t first;

	self->balancing = -1;
	if (sysconf(_SC_PAGESIZE) != 4096 || stat("batches") < 0)
		SKIP(return, "needs mtcopy, root and pages of 4 KiB");
	self->balancing = swap_number(BALANCING, 1);
	if (self->balancing < 0)
		SKIP(return, "needs NUMA balancing");
	/* A scan four times a second. */
	for (int i = 0; i < 3; i++)
		self->scan[i] = swap_number(scan_files[i], i ? 250 : 10);
	CPU_ZERO(&first);
	CPU_SET(0, &first);
	ASSERT_EQ(sched_setaffinity(0, sizeof(first), &first), 0);
	self->memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(self->memory, MAP_FAILED);
	madvise(self->memory, BYTES, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < BYTES / sizeof(size_t); i++)
		((size_t *)self->memory)[i] = i;
	if (count_on(self->memory, 1, true) < BYTES / 4096)
		SKIP(return, "needs a second node");
	ASSERT_EQ(write_file("reasons/numa_misplaced/migrator", "mtcopy"), 0);
}

FIXTURE_TEARDOWN(promote)
{
	write_file("reasons/numa_misplaced/migrator", "inherit");
	for (int i = 0; i < 3; i++)
		if (self->scan[i] > 0)
			swap_number(scan_files[i], self->scan[i]);
	if (self->balancing >= 0)
		swap_number(BALANCING, self->balancing);
}

TEST_F_TIMEOUT(promote, all_arrive_in_batches, 2 * SECONDS)
{
	long long batches = stat("batches") + stat("rejected");
	long long migrated = migrated_for_task();
	size_t wrong = 0, arrived = 0;
	time_t end = time(NULL) + SECONDS;

	while (arrived < BYTES / 4096 * 9 / 10 && time(NULL) < end) {
		for (size_t i = 0; i < BYTES / sizeof(size_t); i++)
			wrong += ((size_t *)self->memory)[i] != i;
		arrived = count_on(self->memory, 0, false);
	}
	batches = stat("batches") + stat("rejected") - batches;
	TH_LOG("%zu of %lu pages in %lld batches", arrived, BYTES / 4096,
	       batches);
	EXPECT_EQ(wrong, 0);
	EXPECT_GE(arrived, BYTES / 4096 / 2);
	/* A hinting fault of its own would have a batch of one folio. */
	EXPECT_LT(batches, (long long)arrived / 8);
	if (migrated >= 0)
		EXPECT_GE(migrated_for_task() - migrated,
			  (long long)arrived / 2);
}

TEST_HARNESS_MAIN
