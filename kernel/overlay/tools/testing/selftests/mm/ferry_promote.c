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
#include "ferry_move.h"

#define BYTES		(8UL << 20)
#define SCAN		"/sys/kernel/debug/sched/numa_balancing/"
#define STATS		"stats/mtcopy/numa_misplaced/"
#define SECONDS		60

static const char * const scan_files[] = {
	SCAN "scan_delay_ms", SCAN "scan_period_min_ms",
	SCAN "scan_period_max_ms",
};

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

FIXTURE(promote) {
	char *memory;
	struct saved balancing;
	struct saved batch_min_bytes;
	struct saved scan[3];
};

FIXTURE_SETUP(promote)
{
	cpu_set_t first;

	if (sysconf(_SC_PAGESIZE) != 4096 || number(STATS "batches") < 0)
		SKIP(return, "needs mtcopy, root and pages of 4 KiB");
	if (access("/sys/devices/system/node/node1", F_OK))
		SKIP(return, "needs a second node");
	if (change_file(NUMA_BALANCING, "1", &self->balancing))
		SKIP(return, "needs NUMA balancing");
	/* A scan four times a second. */
	for (int i = 0; i < 3; i++)
		change_file(scan_files[i], i ? "250" : "10", &self->scan[i]);
	CPU_ZERO(&first);
	CPU_SET(0, &first);
	ASSERT_EQ(sched_setaffinity(0, sizeof(first), &first), 0);
	self->memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(self->memory, MAP_FAILED);
	madvise(self->memory, BYTES, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < BYTES / sizeof(size_t); i++)
		((size_t *)self->memory)[i] = i;
	ASSERT_EQ(move_pages_to(self->memory, BYTES / 4096, 4096, 1,
				MPOL_MF_MOVE), BYTES / 4096);
	/* A batch of one folio counts, too. */
	ASSERT_EQ(change_file("batch_min_bytes", "0", &self->batch_min_bytes),
		  0);
	ASSERT_EQ(write_file("reasons/numa_misplaced/migrator", "mtcopy"), 0);
}

FIXTURE_TEARDOWN(promote)
{
	write_file("reasons/numa_misplaced/migrator", "inherit");
	restore_file("batch_min_bytes", &self->batch_min_bytes);
	for (int i = 0; i < 3; i++)
		restore_file(scan_files[i], &self->scan[i]);
	restore_file(NUMA_BALANCING, &self->balancing);
}

TEST_F_TIMEOUT(promote, all_arrive_in_batches, 2 * SECONDS)
{
	long long batches = number(STATS "batches") + number(STATS "rejected");
	long long migrated = migrated_for_task();
	size_t wrong = 0, arrived = 0;
	time_t end = time(NULL) + SECONDS;

	while (arrived < BYTES / 4096 * 9 / 10 && time(NULL) < end) {
		for (size_t i = 0; i < BYTES / sizeof(size_t); i++)
			wrong += ((size_t *)self->memory)[i] != i;
		arrived = move_pages_to(self->memory, BYTES / 4096, 4096, 0, 0);
	}
	batches = number(STATS "batches") + number(STATS "rejected") - batches;
	TH_LOG("%zu of %lu pages in %lld batches", arrived, BYTES / 4096,
	       batches);
	EXPECT_EQ(wrong, 0);
	EXPECT_GE(arrived, BYTES / 4096 / 2);
	/* A hinting fault of its own would have a batch of one folio. */
	EXPECT_LT(batches, (long long)arrived / 8);
	EXPECT_GT(batches, 0);
	if (migrated >= 0)
		EXPECT_GE(migrated_for_task() - migrated,
			  (long long)arrived / 2);
}

TEST_HARNESS_MAIN
