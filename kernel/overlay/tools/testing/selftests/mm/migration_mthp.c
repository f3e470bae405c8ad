// SPDX-License-Identifier: GPL-2.0
/*
 * Anonymous folios of 64 KiB must stay whole, however often they are migrated.
 * Only those of which a part was unmapped are partially mapped, and are split.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kselftest_harness.h"

#define SIZE_DIR	"/sys/kernel/mm/transparent_hugepage/hugepages-64kB/"
#define ENABLED		SIZE_DIR "enabled"
#define PARTIAL		SIZE_DIR "stats/nr_anon_partially_mapped"
#define FOLIO_SIZE	65536UL
#define FOLIOS		32
#define SIZE		(FOLIOS * FOLIO_SIZE)
#define MOVES		100
#define MPOL_MF_MOVE	2
#define MPOL_MF_MOVE_ALL	4

/* Bits of /proc/kpageflags. */
#define KPF_COMPOUND_HEAD	(UINT64_C(1) << 15)
#define KPF_COMPOUND_TAIL	(UINT64_C(1) << 16)

static size_t page_size;

static long read_number(const char *path)
{
	FILE *file = fopen(path, "r");
	long value = -1;

	if (file && fscanf(file, "%ld", &value) != 1)
		value = -1;
	if (file)
		fclose(file);
	return value;
}

/* Read the word in brackets into @word[16]. */
static void read_selected(const char *path, char *word)
{
	FILE *file = fopen(path, "r");

	word[0] = '\0';
	if (file && fscanf(file, "%*[^[][%15[^]]", word) != 1)
		word[0] = '\0';
	/* The first word is in brackets. */
	if (file && !word[0]) {
		rewind(file);
		if (fscanf(file, "[%15[^]]", word) != 1)
			word[0] = '\0';
	}
	if (file)
		fclose(file);
}

static int write_word(const char *path, const char *word)
{
	FILE *file = fopen(path, "w");
	int err;

	if (!file)
		return -1;
	err = fputs(word, file) < 0;
	err |= fclose(file) != 0;
	return err ? -1 : 0;
}

static uint64_t read_u64(const char *path, uint64_t index)
{
	int fd = open(path, O_RDONLY);
	uint64_t value = 0;

	if (fd < 0)
		return 0;
	if (pread(fd, &value, sizeof(value), index * sizeof(value)) !=
	    sizeof(value))
		value = 0;
	close(fd);
	return value;
}

static uint64_t page_flags(const char *address)
{
	uint64_t entry = read_u64("/proc/self/pagemap",
				  (uintptr_t)address / page_size);
	uint64_t pfn = entry & ((UINT64_C(1) << 55) - 1);

	return pfn ? read_u64("/proc/kpageflags", pfn) : 0;
}

/* Is the memory from @start on a folio of FOLIO_SIZE? */
static bool is_whole(const char *start)
{
	if (!(page_flags(start) & KPF_COMPOUND_HEAD))
		return false;
	for (size_t at = page_size; at < FOLIO_SIZE; at += page_size)
		if (!(page_flags(start + at) & KPF_COMPOUND_TAIL))
			return false;
	return true;
}

static unsigned int count_whole(const char *memory)
{
	unsigned int i, whole = 0;

	for (i = 0; i < FOLIOS; i++)
		whole += is_whole(memory + i * FOLIO_SIZE);
	return whole;
}

/* How many folios are large at all, of those whose second page is mapped? */
static unsigned int count_large(const char *memory)
{
	unsigned int i, large = 0;

	for (i = 0; i < FOLIOS; i++)
		large += !!(page_flags(memory + i * FOLIO_SIZE + page_size) &
			    KPF_COMPOUND_TAIL);
	return large;
}

/*
 * Move all pages to a node. Return how many are there, or -1. move_pages(2)
 * reports EBUSY for a page whose folio it has just isolated, and then moves it.
 */
static long move_all(char *memory, int node, int flags)
{
	size_t i, nr = SIZE / page_size;
	void *pages[SIZE / 4096];
	int nodes[SIZE / 4096], status[SIZE / 4096];
	long there = 0;

	for (i = 0; i < nr; i++) {
		pages[i] = memory + i * page_size;
		nodes[i] = node;
	}
	if (syscall(SYS_move_pages, 0, nr, pages, nodes, status, flags) < 0 ||
	    syscall(SYS_move_pages, 0, nr, pages, NULL, status, 0) < 0)
		return -1;
	for (i = 0; i < nr; i++)
		there += status[i] == node;
	return there;
}

static long move_to(char *memory, int node)
{
	return move_all(memory, node, MPOL_MF_MOVE);
}

FIXTURE(mthp) {
	char enabled[16];
	char *memory;
	long partial;
};

FIXTURE_SETUP(mthp)
{
	char *area;

	page_size = sysconf(_SC_PAGESIZE);
	read_selected(ENABLED, self->enabled);
	if (access("/sys/devices/system/node/node1", F_OK))
		SKIP(return, "needs two nodes");
	if (page_size > 4096 || write_word(ENABLED, "madvise"))
		SKIP(return, "needs folios of 64 KiB");
	area = mmap(NULL, SIZE + FOLIO_SIZE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(area, MAP_FAILED);
	self->memory = (char *)(((uintptr_t)area + FOLIO_SIZE - 1) &
				~(FOLIO_SIZE - 1));
	ASSERT_EQ(madvise(self->memory, SIZE, MADV_HUGEPAGE), 0);
	memset(self->memory, 1, SIZE);
	self->partial = read_number(PARTIAL);
	if (count_whole(self->memory) != FOLIOS) {
		/* Nothing is torn down after a skip. */
		write_word(ENABLED, self->enabled);
		SKIP(return, "no folios of 64 KiB, or not root");
	}
	ASSERT_GE(move_to(self->memory, 1), 0);
}

FIXTURE_TEARDOWN(mthp)
{
	if (self->enabled[0])
		write_word(ENABLED, self->enabled);
}

TEST_F_TIMEOUT(mthp, stays_whole, 600)
{
	for (int i = 0; i < MOVES; i++)
		ASSERT_EQ(move_to(self->memory, i % 2), SIZE / page_size);
	EXPECT_EQ(count_whole(self->memory), FOLIOS);
	EXPECT_EQ(read_number(PARTIAL), self->partial);
}

/* As before, after fork(): each page is mapped twice. */
TEST_F_TIMEOUT(mthp, shared_stays_whole, 600)
{
	int pipes[2];
	char byte;
	pid_t pid;

	ASSERT_EQ(pipe(pipes), 0);
	pid = fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		close(pipes[1]);
		/* Until the parent has moved all, or exits. */
		(void)!read(pipes[0], &byte, 1);
		_exit(0);
	}
	close(pipes[0]);
	for (int i = 0; i < MOVES; i++)
		EXPECT_EQ(move_all(self->memory, i % 2, MPOL_MF_MOVE_ALL),
			  SIZE / page_size);
	EXPECT_EQ(count_whole(self->memory), FOLIOS);
	EXPECT_EQ(read_number(PARTIAL), self->partial);
	close(pipes[1]);
}

/* A folio that is partially mapped is counted, and split by a migration. */
TEST_F(mthp, partially_mapped_is_split)
{
	for (int i = 0; i < FOLIOS; i++)
		ASSERT_EQ(madvise(self->memory + i * FOLIO_SIZE, page_size,
				  MADV_DONTNEED), 0);
	EXPECT_EQ(read_number(PARTIAL), self->partial + FOLIOS);
	EXPECT_GT(move_to(self->memory, 0), 0);
	EXPECT_EQ(count_large(self->memory), 0);
	EXPECT_EQ(read_number(PARTIAL), self->partial);
}

static void *unmap_first_pages(void *memory)
{
	for (int i = 0; i < FOLIOS; i++)
		madvise((char *)memory + i * FOLIO_SIZE, page_size,
			MADV_DONTNEED);
	return NULL;
}

/*
 * A page may be unmapped at any time of the migration of its folio. A folio
 * that is still large must then be counted.
 */
TEST_F_TIMEOUT(mthp, unmapped_while_migrated, 600)
{
	unsigned int large = 0;
	pthread_t thread;

	for (int i = 0; i < MOVES; i++) {
		ASSERT_EQ(madvise(self->memory, SIZE, MADV_DONTNEED), 0);
		ASSERT_EQ(read_number(PARTIAL), self->partial);
		memset(self->memory, 1, SIZE);
		ASSERT_EQ(pthread_create(&thread, NULL, unmap_first_pages,
					 self->memory), 0);
		move_to(self->memory, i % 2);
		pthread_join(thread, NULL);
		large += count_large(self->memory);
		ASSERT_EQ(read_number(PARTIAL),
			  self->partial + count_large(self->memory));
	}
	TH_LOG("%u of %u folios were not split", large, MOVES * FOLIOS);
}

TEST_HARNESS_MAIN
