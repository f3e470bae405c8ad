// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/kernel/mm/migration/reasons/ and stats/reasons/: reasons of migration
 * have migrators of their own at the same time, counters that add up to those
 * of the kernel, and limits that tasks obey without holding anything.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "ferry_knobs.h"
#include "ferry_move.h"

#define MIB		1048576UL
#define HUGE		(2 * MIB)
#define SYSCALL		"reasons/syscall_or_cpuset/"
#define SYSCALL_STATS	"stats/reasons/syscall_or_cpuset/"
#define DAMON_STATS	"stats/reasons/damon/"
#define DAMON		"/sys/kernel/mm/damon/admin/kdamonds/"
#define CONTEXT		DAMON "0/contexts/0/"
#define TARGET		CONTEXT "targets/0/"
#define SCHEME		CONTEXT "schemes/0/"
#define MOVERS		4

/* Bits of /proc/kpageflags. */
#define KPF_LOCKED	0x01UL
#define KPF_LRU		0x20UL

static const char * const reasons[] = {
	"compaction", "memory_failure", "memory_hotplug", "syscall_or_cpuset",
	"mempolicy_mbind", "numa_misplaced", "contig_range", "longterm_pin",
	"demotion", "damon",
};

static long long event(const char *name)
{
	char line[128];
	long long value = -1;
	FILE *file = fopen("/proc/vmstat", "r");
	size_t len = strlen(name);

	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, name, len) && line[len] == ' ')
			value = atoll(line + len);
	if (file)
		fclose(file);
	return value;
}

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/* One entry for every @step bytes. Return how many did not move, or -errno. */
static long move(char *memory, size_t bytes, size_t step, int node)
{
	long there = move_pages_to(memory, bytes / step, step, node,
				   MPOL_MF_MOVE);

	return there < 0 ? there : (long)(bytes / step) - there;
}

static long move_all(char *memory, size_t bytes, int node)
{
	return move(memory, bytes, sysconf(_SC_PAGESIZE), node);
}

FIXTURE(reasons) {
	char *memory;
	size_t bytes;
	struct saved batch_max_us;
};

FIXTURE_SETUP(reasons)
{
	if (geteuid())
		SKIP(return, "needs root");
	if (number(SYSCALL "batch_max_us") < 0)
		SKIP(return, "no " ROOT SYSCALL);
	if (access("/sys/devices/system/node/node1", F_OK))
		SKIP(return, "needs two memory nodes");
	/* A slow machine must not end the batches early. */
	ASSERT_EQ(change_file("batch_max_us", "1000000", &self->batch_max_us),
		  0);
	self->bytes = 16 * MIB;
	self->memory = mmap(NULL, self->bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(self->memory, MAP_FAILED);
	madvise(self->memory, self->bytes, MADV_NOHUGEPAGE);
	memset(self->memory, 1, self->bytes);
	ASSERT_EQ(move_all(self->memory, self->bytes, 0), 0);
}

FIXTURE_TEARDOWN(reasons)
{
	write_file("migrator", "off");
	restore_file("batch_max_us", &self->batch_max_us);
	write_file(SYSCALL "migrator", "inherit");
	write_file("reasons/compaction/migrator", "inherit");
	write_file(SYSCALL "max_bytes_per_s", "0");
	if (self->memory && self->memory != MAP_FAILED)
		munmap(self->memory, self->bytes);
}

TEST_F(reasons, values)
{
	static const struct value values[] = {
		{ SYSCALL "migrator", "unknown", false },
		{ SYSCALL "migrator", "inherit off", false },
		{ SYSCALL "migrator", "off", true },
		{ SYSCALL "migrator", "kernel", true },
		{ "migrator", "inherit", false },
		{ SYSCALL "batch_max_us", "-1", false },
		{ SYSCALL "batch_max_us", "1000001", false },
		{ SYSCALL "batch_max_us", "some", false },
		{ SYSCALL "batch_max_us", "1000000", true },
		{ SYSCALL "max_bytes_per_s", "-1", false },
		{ SYSCALL "max_bytes_per_s", "1048575", false },
		{ SYSCALL "max_bytes_per_s", "64M", false },
		{ SYSCALL "max_bytes_per_s", "1048576", true },
	};

	check_values(_metadata, values, ARRAY_SIZE(values));
	EXPECT_EQ(write_file("reasons/demotion/max_bytes_per_s", "0"),
		  -ENOENT);
}

/* The pages that moved for any reason. */
static long long count_all(struct __test_metadata *_metadata)
{
	long long sum = 0;
	char path[128];

	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++) {
		snprintf(path, sizeof(path), "stats/reasons/%s/moved_pages",
			 reasons[i]);
		EXPECT_GE(number(path), 0);
		sum += number(path);
	}
	return sum;
}

/* Every page that the kernel counts as migrated has a reason. */
TEST_F_TIMEOUT(reasons, pages_add_up, 600)
{
	long long before, sum, after, moved;

	moved = number(SYSCALL_STATS "moved_pages");
	ASSERT_EQ(move_all(self->memory, self->bytes, 1), 0);
	moved = number(SYSCALL_STATS "moved_pages") - moved;
	EXPECT_GE(moved, self->bytes / sysconf(_SC_PAGESIZE));

	/* The kernel counts a batch in one place after the other. */
	for (int i = 0; i < 20; i++) {
		before = event("pgmigrate_success");
		sum = count_all(_metadata);
		after = event("pgmigrate_success");
		if (sum >= before && sum <= after)
			break;
		usleep(50000);
	}
	EXPECT_GE(sum, before);
	EXPECT_LE(sum, after);
}

/* Leave holes that compaction fills. Return whether it moved many pages. */
static bool compact(char *memory, size_t bytes)
{
	long long moved = number("stats/reasons/compaction/moved_pages");
	size_t page = sysconf(_SC_PAGESIZE);

	for (size_t i = 0; i < bytes; i += 2 * page)
		madvise(memory + i, page, MADV_DONTNEED);
	write_file("/proc/sys/vm/compact_memory", "1");
	return number("stats/reasons/compaction/moved_pages") >= moved + 512;
}

/* Two migrators at once: each copies for its own reason and for no other. */
TEST_F_TIMEOUT(reasons, migrators_at_once, 600)
{
	long long ours = number("stats/kernel/syscall_or_cpuset/folios");
	long long theirs = number("stats/kernel/compaction/folios");

	ASSERT_EQ(write_file("migrator", "kernel"), 0);
	ASSERT_EQ(write_file(SYSCALL "migrator", "off"), 0);
	ASSERT_EQ(move_all(self->memory, self->bytes, 1), 0);
	/* Asserted: a skip would replace a failed expectation. */
	ASSERT_EQ(number("stats/kernel/syscall_or_cpuset/folios"), ours);
	if (!compact(self->memory, self->bytes))
		SKIP(return, "compaction moved too little");
	ASSERT_GT(number("stats/kernel/compaction/folios"), theirs);

	ASSERT_EQ(write_file(SYSCALL "migrator", "kernel"), 0);
	ASSERT_EQ(write_file("migrator", "off"), 0);
	theirs = number("stats/kernel/compaction/folios");
	memset(self->memory, 1, self->bytes);
	ASSERT_EQ(move_all(self->memory, self->bytes, 0), 0);
	ASSERT_EQ(move_all(self->memory, self->bytes, 1), 0);
	ASSERT_GT(number("stats/kernel/syscall_or_cpuset/folios"), ours);
	if (!compact(self->memory, self->bytes))
		SKIP(return, "compaction moved too little");
	EXPECT_EQ(number("stats/kernel/compaction/folios"), theirs);
}

TEST_F_TIMEOUT(reasons, locked_times, 600)
{
	static const char * const names[] = {
		"le_64us", "le_128us", "le_256us", "le_512us", "le_1024us",
		"le_2048us", "le_4096us", "le_8192us", "le_16384us",
		"le_32768us", "count",
	};
	long long count = number(SYSCALL_STATS "locked/count"), last = 0;
	long long total = number(SYSCALL_STATS "locked/total_us");
	char path[128];

	ASSERT_EQ(write_file("migrator", "kernel"), 0);
	ASSERT_EQ(move_all(self->memory, self->bytes, 1), 0);
	EXPECT_GT(number(SYSCALL_STATS "locked/count"), count);
	EXPECT_GT(number(SYSCALL_STATS "locked/total_us"), total);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), SYSCALL_STATS "locked/%s",
			 names[i]);
		EXPECT_GE(number(path), last);
		last = number(path);
	}
}

static char *map_huge(size_t bytes)
{
	char *memory = mmap(NULL, bytes + HUGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return NULL;
	memory = (char *)(((uintptr_t)memory + HUGE - 1) & ~(HUGE - 1));
	return madvise(memory, bytes, MADV_HUGEPAGE) ? NULL : memory;
}

struct mover {
	pthread_t thread;
	char *memory;
	size_t bytes;
	double end;
	bool failed;
};

static void *move_until_end(void *argument)
{
	struct mover *mover = argument;

	for (int node = 1; seconds() < mover->end; node = !node)
		mover->failed |= move(mover->memory, mover->bytes, HUGE,
				      node) != 0;
	return NULL;
}

static double moved_bytes(void)
{
	return (double)number(SYSCALL_STATS "moved_pages") *
	       sysconf(_SC_PAGESIZE);
}

/*
 * Move by several tasks at once. Return the bytes a second, -1 on failure. The
 * first second does not count: each task begins with a slice in advance.
 */
static double move_together(char *memory, size_t bytes, unsigned int time)
{
	struct mover movers[MOVERS];
	double start = seconds(), moved;
	bool failed = false;

	for (int i = 0; i < MOVERS; i++) {
		movers[i] = (struct mover) {
			.memory = memory + i * bytes,
			.bytes = bytes,
			.end = start + time + 2,
		};
		if (pthread_create(&movers[i].thread, NULL, move_until_end,
				   &movers[i]))
			return -1;
	}
	sleep(1);
	start = seconds();
	moved = moved_bytes();
	sleep(time);
	moved = (moved_bytes() - moved) / (seconds() - start);
	for (int i = 0; i < MOVERS; i++) {
		pthread_join(movers[i].thread, NULL);
		failed |= movers[i].failed;
	}
	return failed ? -1 : moved;
}

/* Four tasks together reach the limit, in folios of 2 MiB. */
TEST_F_TIMEOUT(reasons, limit_is_of_all_tasks, 600)
{
	const double limit = 64 * MIB;
	/* A call's bytes are moved at once, however low the limit. */
	size_t bytes = 4 * MIB;
	char *memory = map_huge(MOVERS * bytes);
	double rate = 0, possible;
	long long slept;

	if (!memory)
		SKIP(return, "needs THP");
	memset(memory, 1, MOVERS * bytes);
	possible = move_together(memory, bytes, 2);
	ASSERT_GT(possible, 0);
	if (possible < 1.2 * limit)
		SKIP(return, "too slow: %.0f MiB/s", possible / MIB);
	slept = number(SYSCALL_STATS "throttled_us");
	ASSERT_EQ(write_file(SYSCALL "max_bytes_per_s", "67108864"), 0);
	/* The machine may have been busy: one of three must reach the limit. */
	for (int i = 0; i < 3 && rate < 0.8 * limit; i++) {
		rate = move_together(memory, bytes, 10);
		TH_LOG("%.1f MiB/s of 64, %.0f without a limit", rate / MIB,
		       possible / MIB);
		ASSERT_GT(rate, 0);
		EXPECT_LE(rate, 1.05 * limit);
	}
	EXPECT_GT(number(SYSCALL_STATS "throttled_us"), slept);
	/* A slow machine cannot do it. */
	if (possible > 3 * limit)
		EXPECT_GE(rate, 0.8 * limit);
}

/* migrate_pages(2) obeys the limit, too, and moves everything. */
TEST_F_TIMEOUT(reasons, limit_of_migrate_pages, 600)
{
	unsigned long from = 1, to = 2;
	long long slept, moved;
	double start;

	slept = number(SYSCALL_STATS "throttled_us");
	moved = number(SYSCALL_STATS "moved_pages");
	ASSERT_EQ(write_file(SYSCALL "max_bytes_per_s", "8388608"), 0);
	start = seconds();
	EXPECT_GE(syscall(__NR_migrate_pages, 0, 64, &from, &to), 0);
	/* 16 MiB take two seconds, of which the last slice is not awaited. */
	EXPECT_GT(seconds() - start, 1.5);
	EXPECT_GT(number(SYSCALL_STATS "throttled_us"), slept + 1000000);
	EXPECT_GE(number(SYSCALL_STATS "moved_pages"),
		  moved + 0.9 * self->bytes / sysconf(_SC_PAGESIZE));
}

/* The limit is of many calls for little memory each, too. */
TEST_F_TIMEOUT(reasons, limit_of_small_processes, 600)
{
	unsigned long nodes[2] = { 1, 2 };
	long long before = number(SYSCALL_STATS "moved_pages");
	double start, moved;

	ASSERT_EQ(madvise(self->memory + MIB, self->bytes - MIB,
			  MADV_DONTNEED), 0);
	ASSERT_EQ(write_file(SYSCALL "max_bytes_per_s", "2097152"), 0);
	start = seconds();
	for (int i = 0; i < 10; i++)
		EXPECT_GE(syscall(__NR_migrate_pages, 0, 64, &nodes[i % 2],
				  &nodes[(i + 1) % 2]), 0);
	moved = (number(SYSCALL_STATS "moved_pages") - before) *
		(double)sysconf(_SC_PAGESIZE);
	TH_LOG("%.1f MiB in %.1f s", moved / MIB, seconds() - start);
	EXPECT_GT(moved, 9 * MIB);
	/* The pages of the last call are not awaited. */
	EXPECT_LT(moved, 2 * MIB * (seconds() - start + 1.5));
}

/* A range without memory takes no longer than without a limit. */
TEST_F_TIMEOUT(reasons, limit_of_empty_range, 600)
{
	unsigned long from = 1, to = 2;
	size_t bytes = 1UL << 46;
	double start;
	void *empty;

	empty = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS |
		     MAP_NORESERVE, -1, 0);
	if (empty == MAP_FAILED)
		SKIP(return, "no address space");
	ASSERT_EQ(write_file(SYSCALL "max_bytes_per_s", "1073741824"), 0);
	start = seconds();
	EXPECT_GE(syscall(__NR_migrate_pages, 0, 64, &from, &to), 0);
	EXPECT_LT(seconds() - start, 60);
	munmap(empty, bytes);
}

/* A file of DAMON is busy while kdamond itself looks at it. */
static int write_damon(const char *name, const char *value)
{
	int err = write_file(name, value);

	for (int i = 0; i < 100 && err == -EBUSY; i++) {
		usleep(20000);
		err = write_file(name, value);
	}
	return err;
}

/* Move this memory to node 1 once a second, in regions of a hundredth. */
static int start_damon(struct __test_metadata *_metadata, char *memory,
		       size_t bytes)
{
	char pid[32], start[32], end[32];
	const char * const files[][2] = {
		{ DAMON "nr_kdamonds", "1" },
		{ DAMON "0/contexts/nr_contexts", "1" },
		{ CONTEXT "operations", "fvaddr" },
		{ CONTEXT "monitoring_attrs/intervals/sample_us", "50000" },
		{ CONTEXT "monitoring_attrs/intervals/aggr_us", "100000" },
		{ CONTEXT "monitoring_attrs/nr_regions/max", "200" },
		{ CONTEXT "monitoring_attrs/nr_regions/min", "100" },
		{ CONTEXT "targets/nr_targets", "1" },
		{ TARGET "pid_target", pid },
		{ TARGET "regions/nr_regions", "1" },
		{ TARGET "regions/0/start", start },
		{ TARGET "regions/0/end", end },
		{ CONTEXT "schemes/nr_schemes", "1" },
		{ SCHEME "action", "migrate_cold" },
		{ SCHEME "target_nid", "1" },
		{ SCHEME "apply_interval_us", "1000000" },
		{ SCHEME "access_pattern/sz/max", "1073741824" },
		{ SCHEME "access_pattern/nr_accesses/max", "1000000" },
		{ SCHEME "access_pattern/age/max", "1000000" },
		{ DAMON "0/state", "on" },
	};
	int err = 0;

	snprintf(pid, sizeof(pid), "%d", getpid());
	snprintf(start, sizeof(start), "%zu", (size_t)memory);
	snprintf(end, sizeof(end), "%zu", (size_t)memory + bytes);
	for (size_t i = 0; i < ARRAY_SIZE(files) && !err; i++) {
		err = write_damon(files[i][0], files[i][1]);
		if (err)
			TH_LOG("%s: %s", files[i][0], strerror(-err));
	}
	return err;
}

/* DAMON reaches its limit, and tasks that write to its files do not wait. */
TEST_F_TIMEOUT(reasons, limit_of_damon, 600)
{
	long long before = number(DAMON_STATS "moved_pages");
	long long skipped = number(DAMON_STATS "throttled_us");
	double start, asked, moved;

	if (number(DAMON "nr_kdamonds"))
		SKIP(return, "no DAMON, or another one");
	ASSERT_EQ(write_file("reasons/damon/max_bytes_per_s", "1048576"), 0);
	start = seconds();
	EXPECT_EQ(start_damon(_metadata, self->memory, self->bytes), 0);
	sleep(8);
	asked = seconds();
	EXPECT_EQ(write_damon(DAMON "0/state", "update_schemes_stats"), 0);
	EXPECT_EQ(write_damon(DAMON "0/state", "off"), 0);
	EXPECT_LT(seconds() - asked, 4);
	moved = (number(DAMON_STATS "moved_pages") - before) *
		(double)sysconf(_SC_PAGESIZE);
	TH_LOG("%.1f MiB in %.1f s", moved / MIB, seconds() - start);
	/* One region may be in advance. The scheme begins after a second. */
	EXPECT_LT(moved, MIB * (seconds() - start + 2));
	EXPECT_GT(moved, 3 * MIB);
	EXPECT_GT(number(DAMON_STATS "throttled_us"), skipped);
	write_damon(DAMON "nr_kdamonds", "0");
	write_file("reasons/damon/max_bytes_per_s", "0");
}

/*
 * How many folios of a process are locked, not on the LRU, or not known, of
 * those at every @step bytes.
 */
static size_t held(pid_t pid, char *memory, size_t bytes, size_t step)
{
	size_t page = sysconf(_SC_PAGESIZE), free = 0;
	int flags = open("/proc/kpageflags", O_RDONLY);
	uint64_t entry, flag;
	char path[64];
	int map;

	snprintf(path, sizeof(path), "/proc/%d/pagemap", pid);
	map = open(path, O_RDONLY);
	for (size_t i = 0; i < bytes; i += step) {
		off_t at = ((uintptr_t)memory + i) / page * sizeof(entry);

		if (pread(map, &entry, sizeof(entry), at) != sizeof(entry))
			break;
		entry &= (1ULL << 55) - 1;
		if (pread(flags, &flag, sizeof(flag), entry * sizeof(flag)) !=
		    sizeof(flag))
			break;
		free += !(flag & KPF_LOCKED) && flag & KPF_LRU;
	}
	close(map);
	close(flags);
	return bytes / step - free;
}

/* Whether a task waited from before a look at its folios until after it. */
static bool held_while_asleep(pid_t pid, char *memory, size_t bytes,
			      size_t *count)
{
	long long moved = number(SYSCALL_STATS "moved_pages");

	if (state_of(pid) != 'D')
		return false;
	*count = held(pid, memory, bytes, HUGE);
	return state_of(pid) == 'D' &&
	       moved == number(SYSCALL_STATS "moved_pages");
}

/* A task that waits holds nothing, and dies at once. */
TEST_F_TIMEOUT(reasons, limit_holds_nothing, 600)
{
	size_t bytes = 64 * MIB, count = 1;
	char *memory = map_huge(bytes);
	bool seen = false;
	double start;
	pid_t child;

	if (!memory)
		SKIP(return, "needs THP");
	/* The first slice of a few huge folios is due after many seconds. */
	ASSERT_EQ(write_file(SYSCALL "max_bytes_per_s", "1048576"), 0);
	child = fork();
	ASSERT_GE(child, 0);
	if (!child) {
		memset(memory, 2, bytes);
		move(memory, bytes, HUGE, 1);
		_exit(move(memory, bytes, HUGE, 0) != 0);
	}
	for (int i = 0; i < 400 && !seen; i++) {
		usleep(20000);
		seen = held_while_asleep(child, memory, bytes, &count);
	}
	EXPECT_TRUE(seen);
	EXPECT_EQ(count, 0);
	start = seconds();
	kill(child, SIGKILL);
	EXPECT_EQ(waitpid(child, NULL, 0), child);
	EXPECT_LT(seconds() - start, 5);
}

/* A process that dies does not keep its memory until a limit lets it move. */
TEST_F_TIMEOUT(reasons, limit_frees_the_dead, 600)
{
	size_t page = sysconf(_SC_PAGESIZE);
	unsigned long from = 1, to = 2;
	pid_t child, killer;
	double start;
	int ready[2];
	char byte;

	ASSERT_EQ(pipe(ready), 0);
	child = fork();
	ASSERT_GE(child, 0);
	if (!child) {
		memset(self->memory, 2, self->bytes);
		move(self->memory, self->bytes, page, 0);
		if (write(ready[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	ASSERT_EQ(read(ready[0], &byte, 1), 1);
	/* 16 MiB take 16 seconds. */
	ASSERT_EQ(write_file(SYSCALL "max_bytes_per_s", "1048576"), 0);
	killer = fork();
	ASSERT_GE(killer, 0);
	if (!killer) {
		sleep(1);
		_exit(kill(child, SIGKILL) != 0);
	}
	start = seconds();
	EXPECT_EQ(syscall(__NR_migrate_pages, child, 64, &from, &to), -1);
	EXPECT_EQ(errno, ESRCH);
	EXPECT_LT(seconds() - start, 12);
	EXPECT_EQ(waitpid(killer, NULL, 0), killer);
	EXPECT_EQ(waitpid(child, NULL, 0), child);
	close(ready[0]);
	close(ready[1]);
}

TEST_HARNESS_MAIN
