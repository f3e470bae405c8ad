// SPDX-License-Identifier: GPL-2.0
/*
 * PMD-mapped folios of a batch have one TLB flush. Until then CPUs may use the
 * old PMDs, so mprotect(2), mremap(2) and munmap(2) must flush before they
 * return. MADV_DONTNEED must see a PMD whose folio moves.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "ferry_knobs.h"
#include "ferry_move.h"

#define HUGE_SIZE	(2UL << 20)
#define FOLIOS		8
#define SIZE		(FOLIOS * HUGE_SIZE)
#define TURNS		300
#define MOST_SECONDS	60
#define BATCHES		10
#define READERS		2
#define KPF_THP		(UINT64_C(1) << 22)

/* Shared by all threads of a test. */
static struct {
	atomic_uintptr_t memory;	/* that moves */
	atomic_uintptr_t target;	/* that is written */
	atomic_uint forbidden;		/* odd while no write may succeed */
	atomic_ulong violations;
	atomic_ulong writes;
	atomic_bool stop;
} shared;

static sigjmp_buf denied;

static char *memory(void)
{
	return (char *)shared.memory;
}

static void on_segv(int sig)
{
	siglongjmp(denied, sig);
}

static long shootdowns(void)
{
	FILE *file = fopen("/proc/interrupts", "r");
	char line[4096], *at, *end;
	long sum = -1, number;

	while (file && sum < 0 && fgets(line, sizeof(line), file)) {
		at = strstr(line, "TLB:");
		if (!at)
			continue;
		sum = 0;
		for (at += 4; number = strtol(at, &end, 10), end != at;
		     at = end)
			sum += number;
	}
	if (file)
		fclose(file);
	return sum;
}

static bool is_huge(char *address)
{
	uint64_t entry = 0, flags = 0;
	int fd = open("/proc/self/pagemap", O_RDONLY);

	if (pread(fd, &entry, 8, (uintptr_t)address / 4096 * 8) != 8)
		entry = 0;
	close(fd);
	entry &= (UINT64_C(1) << 55) - 1;
	fd = open("/proc/kpageflags", O_RDONLY);
	if (!entry || pread(fd, &flags, 8, entry * 8) != 8)
		flags = 0;
	close(fd);
	return flags & KPF_THP;
}

/* Move the first page of each folio, and with it the folio. */
static long move_to(int node)
{
	return move_pages_to(memory(), FOLIOS, HUGE_SIZE, node, MPOL_MF_MOVE);
}

static void *move_all_the_time(void *unused)
{
	for (int node = 0; !shared.stop; node = !node)
		move_to(node);
	return NULL;
}

/* A write that begins and ends while it is forbidden must not succeed. */
static void *write_all_the_time(void *unused)
{
	unsigned int before;

	while (!shared.stop) {
		if (sigsetjmp(denied, 1)) {
			sched_yield();
			continue;
		}
		before = shared.forbidden;
		atomic_store((atomic_char *)shared.target, 1);
		shared.writes++;
		if (before % 2 && shared.forbidden == before)
			shared.violations++;
	}
	return NULL;
}

/*
 * Memory that does not move: a task that waits for a folio leaves its CPU, and
 * a CPU that is idle is not interrupted.
 */
static void *read_all_the_time(void *unused)
{
	while (!shared.stop)
		atomic_load((atomic_char *)(shared.memory + SIZE));
	return NULL;
}

FIXTURE(thp) {
	char *area;
	struct saved migrator;
	struct saved balancing;
	struct saved batch_max_us;
};

FIXTURE_SETUP(thp)
{
	struct sigaction action = { .sa_handler = on_segv };

	self->area = mmap(NULL, 2 * SIZE + HUGE_SIZE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(self->area, MAP_FAILED);
	memset(&shared, 0, sizeof(shared));
	shared.memory = ((uintptr_t)self->area + HUGE_SIZE - 1) &
			~(HUGE_SIZE - 1);
	shared.target = shared.memory;
	madvise(memory(), SIZE, MADV_HUGEPAGE);
	memset(memory(), 1, SIZE);
	sigaction(SIGSEGV, &action, NULL);
	if (!is_huge(memory()))
		SKIP(return, "no huge page, or not root");
	if (move_to(1) < FOLIOS)
		SKIP(return, "needs two nodes with memory");
	if (change_file("migrator", "mtcopy", &self->migrator))
		SKIP(return, "a batch has one huge folio without mtcopy");
	/* It isolates folios that a test wants to move. */
	change_file(NUMA_BALANCING, "0", &self->balancing);
	/* A busy machine must not end the batches early. */
	ASSERT_EQ(change_file("batch_max_us", "1000000", &self->batch_max_us),
		  0);
}

FIXTURE_TEARDOWN(thp)
{
	restore_file("migrator", &self->migrator);
	restore_file(NUMA_BALANCING, &self->balancing);
	restore_file("batch_max_us", &self->batch_max_us);
	munmap(self->area, 2 * SIZE + HUGE_SIZE);
}

TEST_F_TIMEOUT(thp, one_flush_for_a_batch, 600)
{
	long flushes, folios, before, best = LONG_MAX;
	pthread_t readers[READERS];
	int batches = 0;

	/* One CPU moves, and mtcopy wants one that is idle. */
	if (shootdowns() < 0 || sysconf(_SC_NPROCESSORS_ONLN) < READERS + 2)
		SKIP(return, "no count of TLB shootdowns, or too few CPUs");
	for (int i = 0; i < READERS; i++)
		pthread_create(&readers[i], NULL, read_all_the_time, NULL);
	/* Other tasks are flushed for, too: the fewest count. */
	for (int i = 0; i < 100 && batches < 10; i++) {
		folios = number("stats/mtcopy/folios");
		before = shootdowns();
		ASSERT_EQ(move_to(i % 2), FOLIOS);
		flushes = shootdowns() - before;
		/* Without a batch there is a flush for each folio. */
		if (number("stats/mtcopy/folios") != folios + FOLIOS)
			continue;
		batches++;
		best = flushes < best ? flushes : best;
	}
	shared.stop = true;
	for (int i = 0; i < READERS; i++)
		pthread_join(readers[i], NULL);
	TH_LOG("%ld shootdowns for %d folios, of all CPUs", best, FOLIOS);
	/* A flush interrupts up to READERS CPUs; other flushes interfere. */
	EXPECT_LT(best, FOLIOS);
}

/* Whether many folios have moved in batches since @folios was their count. */
static bool moved_many(long long folios)
{
	return number("stats/mtcopy/folios") >= folios + BATCHES * FOLIOS;
}

/* mtcopy rejects batches while no CPU is idle: the last turns wait for it. */
static bool is_over(int turn, long long folios, time_t start)
{
	return turn >= TURNS && (moved_many(folios) ||
				 time(NULL) > start + MOST_SECONDS);
}

/* Forbid writes with @forbid and allow them again with @allow, many times. */
static void check_races(struct __test_metadata *_metadata,
			int (*forbid)(void), int (*allow)(void))
{
	long long folios = number("stats/mtcopy/folios");
	time_t start = time(NULL);
	pthread_t mover, writer;

	ASSERT_EQ(pthread_create(&mover, NULL, move_all_the_time, NULL), 0);
	ASSERT_EQ(pthread_create(&writer, NULL, write_all_the_time, NULL), 0);
	for (int i = 0; !is_over(i, folios, start); i++) {
		usleep(1000);
		ASSERT_EQ(forbid(), 0);
		shared.forbidden++;
		usleep(200);
		shared.forbidden++;
		ASSERT_EQ(allow(), 0);
	}
	shared.stop = true;
	pthread_join(mover, NULL);
	pthread_join(writer, NULL);
	ASSERT_EQ(shared.violations, 0);
	ASSERT_GT(shared.writes, 0);
	if (!moved_many(folios))
		SKIP(return, "no CPU was idle");
}

static int protect(void)
{
	return mprotect(memory(), SIZE, PROT_READ);
}

static int unprotect(void)
{
	return mprotect(memory(), SIZE, PROT_READ | PROT_WRITE);
}

TEST_F_TIMEOUT(thp, mprotect_flushes, 600)
{
	check_races(_metadata, protect, unprotect);
}

/* The first folio only: a present PMD of another one flushes for all. */
static int move_mapping(uintptr_t from, uintptr_t to)
{
	return mremap((void *)from, HUGE_SIZE, HUGE_SIZE,
		      MREMAP_MAYMOVE | MREMAP_FIXED, to) == MAP_FAILED ? -1 : 0;
}

static int remap_away(void)
{
	return move_mapping(shared.target, shared.target + SIZE);
}

static int remap_back(void)
{
	return move_mapping(shared.target + SIZE, shared.target);
}

TEST_F_TIMEOUT(thp, mremap_flushes, 600)
{
	check_races(_metadata, remap_away, remap_back);
}

/* MADV_DONTNEED leaves out a PMD that it reads as none. */
TEST_F_TIMEOUT(thp, dontneed_drops, 600)
{
	long long folios = number("stats/mtcopy/folios");
	time_t start = time(NULL);
	pthread_t mover;
	long kept = 0;

	ASSERT_EQ(pthread_create(&mover, NULL, move_all_the_time, NULL), 0);
	for (int i = 0; !is_over(i, folios, start); i++) {
		for (size_t at = 0; at < SIZE; at += HUGE_SIZE)
			memory()[at] = 1;
		ASSERT_EQ(madvise(memory(), SIZE, MADV_DONTNEED), 0);
		for (size_t at = 0; at < SIZE; at += HUGE_SIZE)
			kept += memory()[at];
	}
	shared.stop = true;
	pthread_join(mover, NULL);
	ASSERT_EQ(kept, 0);
	if (!moved_many(folios))
		SKIP(return, "no CPU was idle");
}

TEST_HARNESS_MAIN
