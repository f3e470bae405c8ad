// SPDX-License-Identifier: GPL-2.0
/*
 * Deferred flushes of read-only memory: the counters of avoided flushes are
 * net, and compaction drains each pageblock.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>

#include "ferry_knobs.h"
#include "ferry_move.h"

#define PAGES		64
#define HUGE_PAGES	"/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
#define VM		"/proc/sys/vm/"

/* Anonymous memory, while migrc is enabled and keeps folios for a minute. */
FIXTURE(deferred) {
	struct saved enabled;
	struct saved age;
	struct saved balancing;
	struct saved proactiveness;
	struct saved hugepages;
	char *memory;
	size_t bytes;
};

FIXTURE_SETUP(deferred)
{
	if (geteuid())
		SKIP(return, "needs root");
	if (change_file("migrc/enabled", "1", &self->enabled))
		SKIP(return, "kernel without CONFIG_MIGRC");
	ASSERT_EQ(change_file("migrc/max_age_ms", "60000", &self->age), 0);
	/* It flushes what it unmaps, so nothing is deferred. */
	change_file(NUMA_BALANCING, "0", &self->balancing);
	self->bytes = 32 << 20;
	self->memory = mmap(NULL, self->bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(self->memory, MAP_FAILED);
	ASSERT_EQ(madvise(self->memory, self->bytes, MADV_NOHUGEPAGE), 0);
	memset(self->memory, 1, self->bytes);
}

FIXTURE_TEARDOWN(deferred)
{
	EXPECT_EQ(restore_file("migrc/enabled", &self->enabled), 0);
	EXPECT_EQ(restore_file("migrc/max_age_ms", &self->age), 0);
	restore_file(NUMA_BALANCING, &self->balancing);
	EXPECT_EQ(restore_file(HUGE_PAGES, &self->hugepages), 0);
	EXPECT_EQ(restore_file(VM "compaction_proactiveness",
			       &self->proactiveness), 0);
	munmap(self->memory, self->bytes);
}

/* A flush that was deferred counts as avoided until it is done. */
TEST_F_TIMEOUT(deferred, avoided_is_net, 600)
{
	long page = sysconf(_SC_PAGESIZE);
	long long before, moved, drained;

	if (access("/sys/devices/system/node/node1", F_OK))
		SKIP(return, "needs two memory nodes");
	ASSERT_EQ(mprotect(self->memory, self->bytes, PROT_READ), 0);
	ASSERT_EQ(move_pages_to(self->memory, PAGES, page, 0, MPOL_MF_MOVE),
		  PAGES);
	ASSERT_EQ(write_file("migrc/drain", "1"), 0);
	before = number("migrc/counters/avoided_flushes");
	ASSERT_EQ(move_pages_to(self->memory, PAGES, page, 1, MPOL_MF_MOVE),
		  PAGES);
	moved = number("migrc/counters/avoided_flushes");
	ASSERT_EQ(write_file("migrc/drain", "1"), 0);
	drained = number("migrc/counters/avoided_flushes");
	EXPECT_GT(moved, before);
	EXPECT_LT(drained, moved);
	EXPECT_GE(drained, before);
}

/* Read-only memory, each second page of which is free. */
static void fragment(struct __test_metadata *_metadata, char *memory,
		     size_t bytes)
{
	long page = sysconf(_SC_PAGESIZE);

	for (size_t at = 0; at < bytes; at += 2 * page)
		ASSERT_EQ(madvise(memory + at, page, MADV_DONTNEED), 0);
	ASSERT_EQ(mprotect(memory, bytes, PROT_READ), 0);
	ASSERT_EQ(write_file("migrc/drain", "1"), 0);
}

/* Pages in quarantine do not merge, so compaction drains each pageblock. */
TEST_F_TIMEOUT(deferred, compaction_drains, 600)
{
	long long before, ptes;

	fragment(_metadata, self->memory, self->bytes);
	before = number("migrc/counters/flushed_compaction");
	ptes = number("migrc/counters/ptes");
	if (write_file(VM "compact_memory", "1"))
		SKIP(return, "kernel without CONFIG_COMPACTION");
	if (number("migrc/counters/ptes") == ptes)
		SKIP(return, "compaction moved no read-only page");
	EXPECT_GT(number("migrc/counters/flushed_compaction"), before);
}

/* So does the compaction that an allocation of a huge page waits for. */
TEST_F_TIMEOUT(deferred, compaction_for_huge_pages_drains, 600)
{
	const size_t bytes = 128 << 20;
	long long flushes, ptes;
	char *memory;

	if (access(HUGE_PAGES, W_OK))
		SKIP(return, "no huge pages of 2 MiB");
	/* Other compaction has no order, and another reason to drain. */
	if (change_file(VM "compaction_proactiveness", "0",
			&self->proactiveness))
		SKIP(return, "kernel without CONFIG_COMPACTION");
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(memory, MAP_FAILED);
	ASSERT_EQ(madvise(memory, bytes, MADV_NOHUGEPAGE), 0);
	memset(memory, 1, bytes);
	fragment(_metadata, memory, bytes);
	flushes = number("migrc/counters/flushed_compaction");
	ptes = number("migrc/counters/ptes");
	ASSERT_EQ(change_file(HUGE_PAGES, "100000", &self->hugepages), 0);
	flushes = number("migrc/counters/flushed_compaction") - flushes;
	ptes = number("migrc/counters/ptes") - ptes;
	munmap(memory, bytes);
	if (!ptes)
		SKIP(return, "compaction moved no read-only page");
	EXPECT_GT(flushes, 0);
}

TEST_HARNESS_MAIN
