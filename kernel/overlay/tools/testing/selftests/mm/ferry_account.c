// SPDX-License-Identifier: GPL-2.0
/*
 * The time of the CPUs that help a migration is charged once, to the task that
 * migrates and to its cgroup, and to no other.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "ferry_knobs.h"
#include "ferry_move.h"

#define HUGE	(2UL << 20)
#define BYTES	(32 * HUGE)
#define MOVES	16
#define ROUNDS	10
/* Times are counted in ticks in some places. */
#define TICK_NS	20000000LL

static char tree[32];

static int write_cgroup(const char *file, const char *value)
{
	char path[128];

	snprintf(path, sizeof(path), "%s%s", tree, file);
	return write_file(path, value);
}

/* Enter a cgroup, "" for the root. */
static void enter(const char *cgroup)
{
	char file[64];

	snprintf(file, sizeof(file), "%s/cgroup.procs", cgroup);
	if (write_cgroup(file, "0"))
		fprintf(stderr, "%s: %s\n", file, "cannot enter");
}

static int make_cgroup(const char *cgroup)
{
	char path[128];

	snprintf(path, sizeof(path), "%s%s", tree, cgroup);
	return mkdir(path, 0700);
}

static void remove_cgroup(const char *cgroup)
{
	char path[128];

	snprintf(path, sizeof(path), "%s%s", tree, cgroup);
	rmdir(path);
}

/* CPU time of a cgroup in ns. */
static long long usage(const char *cgroup)
{
	long long us = -1;
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s%s/cpu.stat", tree, cgroup);
	file = fopen(path, "r");
	if (!file || fscanf(file, "usage_usec %lld", &us) != 1)
		us = -1;
	if (file)
		fclose(file);
	return us * 1000;
}

static long long own(void)
{
	struct rusage now;

	getrusage(RUSAGE_SELF, &now);
	return (now.ru_utime.tv_sec + now.ru_stime.tv_sec) * 1000000000LL +
	       (now.ru_utime.tv_usec + now.ru_stime.tv_usec) * 1000LL;
}

static long long wall(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

FIXTURE(account) {
	char *memory;
	pid_t other;
	bool limits;
};

FIXTURE_SETUP(account)
{
	char *map;

	if (geteuid())
		SKIP(return, "needs root");
	if (number("mtcopy/helper_ns") < 0)
		SKIP(return, "mtcopy is not loaded");
	if (access("/sys/devices/system/node/node1", F_OK))
		SKIP(return, "needs two memory nodes");
	strcpy(tree, "/tmp/ferry_XXXXXX");
	ASSERT_NE(mkdtemp(tree), NULL);
	ASSERT_EQ(mount("ferry", tree, "cgroup2", 0, NULL), 0);
	ASSERT_EQ(make_cgroup("/mover"), 0);
	ASSERT_EQ(make_cgroup("/other"), 0);
	self->other = fork();
	ASSERT_GE(self->other, 0);
	if (!self->other) {
		enter("/other");
		pause();
		_exit(0);
	}
	enter("/mover");
	/* After the fork, because shared folios would not move. */
	map = mmap(NULL, BYTES + HUGE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(map, MAP_FAILED);
	self->memory = (char *)(((uintptr_t)map + HUGE - 1) & ~(HUGE - 1));
	madvise(self->memory, BYTES, MADV_HUGEPAGE);
	memset(self->memory, 1, BYTES);
}

FIXTURE_TEARDOWN(account)
{
	write_file("migrator", "off");
	if (self->other <= 0)
		return;
	kill(self->other, SIGKILL);
	waitpid(self->other, NULL, 0);
	enter("");
	remove_cgroup("/mover");
	remove_cgroup("/other");
	if (self->limits)
		write_cgroup("/cgroup.subtree_control", "-cpu");
	umount(tree);
	rmdir(tree);
}

static long move(char *memory, int node)
{
	return move_pages_to(memory, BYTES / HUGE, HUGE, node, MPOL_MF_MOVE);
}

struct times {
	long long wall;
	long long helpers;
	long long task;
	long long group;
	long long other;
};

static struct times now(void)
{
	return (struct times) {
		.wall = wall(),
		.helpers = number("mtcopy/helper_ns"),
		.task = own(),
		.group = usage("/mover"),
		.other = usage("/other"),
	};
}

static struct times since(struct times before)
{
	struct times after = now();

	/* The wall time contains all others. */
	after.wall = wall();
	return (struct times) {
		.wall = after.wall - before.wall,
		.helpers = after.helpers - before.helpers,
		.task = after.task - before.task,
		.group = after.group - before.group,
		.other = after.other - before.other,
	};
}

TEST_F_TIMEOUT(account, helpers_are_charged_once, 600)
{
	struct times before, time = {};

	ASSERT_EQ(write_file("mtcopy/threads", "4"), 0);
	ASSERT_EQ(write_file("migrator", "mtcopy"), 0);
	/* The other task has used CPU time until it sleeps. */
	for (int i = 0; i < 600 && state_of(self->other) != 'S'; i++)
		usleep(100000);
	/* mtcopy rests for many batches when it finds no idle CPU. */
	for (int round = 0; round < ROUNDS && !time.helpers; round++) {
		before = now();
		for (int i = 0; i < MOVES; i++)
			ASSERT_EQ(move(self->memory, i % 2), BYTES / HUGE);
		time = since(before);
	}
	TH_LOG("%lld us, %lld of helpers; charged: task %lld, group %lld",
	       time.wall / 1000, time.helpers / 1000, time.task / 1000,
	       time.group / 1000);
	if (!time.helpers)
		SKIP(return, "no CPU was idle");
	EXPECT_EQ(time.other, 0);
	EXPECT_LT(llabs(time.group - time.task), time.group / 20 + TICK_NS);
	/* The task itself ran for some of the time, or all of it. */
	EXPECT_GE(time.group, time.helpers);
	EXPECT_LE(time.group, time.wall + time.helpers + time.helpers / 20 +
		  TICK_NS);
	/* It copies as long as its helpers do, so it ran most of the time. */
	EXPECT_GE(time.group, time.helpers + time.wall / 4);
}

/*
 * cpu.max bounds the time for which the tasks of a cgroup run. The time of the
 * helpers is charged to the cgroup, but does not count against the limit.
 */
TEST_F_TIMEOUT(account, cpu_max_is_for_tasks, 600)
{
	struct times before, time = {};
	char limit[64];

	snprintf(limit, sizeof(limit), "%s/mover/cpu.max", tree);
	self->limits = access(limit, F_OK) &&
		       !write_cgroup("/cgroup.subtree_control", "+cpu");
	if (write_file(limit, "40000 200000"))
		SKIP(return, "no limits of CPU time");
	ASSERT_EQ(write_file("mtcopy/threads", "4"), 0);
	ASSERT_EQ(write_file("migrator", "mtcopy"), 0);
	for (int round = 0; round < ROUNDS && !time.helpers; round++) {
		before = now();
		for (int i = 0; i < MOVES; i++)
			ASSERT_EQ(move(self->memory, i % 2), BYTES / HUGE);
		time = since(before);
	}
	TH_LOG("%lld us, %lld of helpers; charged: task %lld, group %lld",
	       time.wall / 1000, time.helpers / 1000, time.task / 1000,
	       time.group / 1000);
	if (time.helpers < 2 * TICK_NS)
		SKIP(return, "no CPU was idle");
	/* A period's time may be used at its end, and the next at once. */
	EXPECT_LE(time.task - time.helpers, time.wall / 5 + 4 * TICK_NS);
	EXPECT_GE(time.group, time.helpers);
}

TEST_HARNESS_MAIN
