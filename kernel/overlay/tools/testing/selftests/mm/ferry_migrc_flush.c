// SPDX-License-Identifier: GPL-2.0
/*
 * Deferred flushes of read-only memory: the counters of avoided flushes are
 * net, and compaction drains each pageblock.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "ferry_knobs.h"

#define PAGES		64
#define HUGE_PAGES	"../hugepages/hugepages-2048kB/nr_hugepages"
#define VM		"../../../../proc/sys/vm/"

/* Anonymous memory, while migrc is enabled and keeps folios for a minute. */
FIXTURE(deferred) {
	char enabled[16];
	char age[32];
	char balancing[16];
	char *memory;
	size_t bytes;
};

FIXTURE_SETUP(deferred)
{
	if (geteuid())
		SKIP(return, "needs root");
	if (read_file("migrc/enabled", self->enabled, sizeof(self->enabled)))
		SKIP(return, "kernel without CONFIG_MIGRC");
	ASSERT_EQ(read_file("migrc/max_age_ms", self->age, sizeof(self->age)),
		  0);
	/* It flushes what it unmaps, so nothing is deferred. */
	self->balancing[0] = '\0';
	read_file(NUMA_BALANCING, self->balancing, sizeof(self->balancing));
	write_file(NUMA_BALANCING, "0");
	self->bytes = 32 << 20;
	self->memory = mmap(NULL, self->bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(self->memory, MAP_FAILED);
	ASSERT_EQ(madvise(self->memory, self->bytes, MADV_NOHUGEPAGE), 0);
	memset(self->memory, 1, self->bytes);
	ASSERT_EQ(write_file("migrc/enabled", "1"), 0);
	ASSERT_EQ(write_file("migrc/max_age_ms", "60000"), 0);
}

FIXTURE_TEARDOWN(deferred)
{
	EXPECT_EQ(write_file("migrc/enabled", self->enabled), 0);
	EXPECT_EQ(write_file("migrc/max_age_ms", self->age), 0);
	if (self->balancing[0])
		write_file(NUMA_BALANCING, self->balancing);
	munmap(self->memory, self->bytes);
}

/* A flush that was deferred counts as avoided until it is done. */
TEST_F_TIMEOUT(deferred, avoided_is_net, 600)
{
	long page = sysconf(_SC_PAGESIZE);
	long long before, moved, drained;
	int nodes[PAGES], status[PAGES];
	void *pages[PAGES];

	if (access("/sys/devices/system/node/node1", F_OK))
		SKIP(return, "needs two memory nodes");
	ASSERT_EQ(mprotect(self->memory, self->bytes, PROT_READ), 0);
	for (int i = 0; i < PAGES; i++) {
		pages[i] = self->memory + i * page;
		nodes[i] = 0;
	}
	ASSERT_EQ(syscall(SYS_move_pages, 0, PAGES, pages, nodes, status, 2),
		  0);
	ASSERT_EQ(write_file("migrc/drain", "1"), 0);
	for (int i = 0; i < PAGES; i++)
		nodes[i] = 1;
	before = number("migrc/counters/avoided_flushes");
	ASSERT_EQ(syscall(SYS_move_pages, 0, PAGES, pages, nodes, status, 2),
		  0);
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
	char proactiveness[16], huge[16], *memory;
	long long flushes, ptes;

	if (read_file(HUGE_PAGES, huge, sizeof(huge)) ||
	    read_file(VM "compaction_proactiveness", proactiveness,
		      sizeof(proactiveness)))
		SKIP(return, "no huge pages of 2 MiB, or no compaction");
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(memory, MAP_FAILED);
	ASSERT_EQ(madvise(memory, bytes, MADV_NOHUGEPAGE), 0);
	memset(memory, 1, bytes);
	fragment(_metadata, memory, bytes);
	/* Other compaction has no order, and another reason to drain. */
	EXPECT_EQ(write_file(VM "compaction_proactiveness", "0"), 0);
	flushes = number("migrc/counters/flushed_compaction");
	ptes = number("migrc/counters/ptes");
	EXPECT_EQ(write_file(HUGE_PAGES, "100000"), 0);
	flushes = number("migrc/counters/flushed_compaction") - flushes;
	ptes = number("migrc/counters/ptes") - ptes;
	EXPECT_EQ(write_file(HUGE_PAGES, huge), 0);
	EXPECT_EQ(write_file(VM "compaction_proactiveness", proactiveness), 0);
	munmap(memory, bytes);
	if (!ptes)
		SKIP(return, "compaction moved no read-only page");
	EXPECT_GT(flushes, 0);
}

TEST_HARNESS_MAIN
