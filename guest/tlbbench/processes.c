// SPDX-License-Identifier: GPL-2.0
#include "processes.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sysfs.h"
#include "util.h"

/* One reads all the time; the other makes the calls, and sleeps between them. */
#define THREADS 2
/* Pages that a thread reads before it looks up, and those that a process allocates and frees. */
#define SLICE_PAGES 16
#define OWN_PAGES 4
#define POLL_NS 200000

/* A cache line each, so that the processes do not slow each other down as they count. */
struct process {
	_Alignas(64) _Atomic uint64_t calls;
	atomic_uint readers;	/* threads that have read all of the memory */
	pid_t pid;
};

/* In memory that this program and all processes share. */
struct shared {
	_Atomic uint64_t allowed;
	atomic_bool stopping;
	struct process process[MAX_PROCESSES];
};

static struct shared *shared;
static const struct target *target;
static unsigned int process_count;
static uint64_t tick_ns;

/* Read so many pages from the at-th on, counted on from pass to pass, and in each pass another word; returns the next. */
static uint64_t read_pages(uint64_t at, size_t count)
{
	for (size_t i = 0; i < count; i++, at++) {
		size_t page = at % target->pages;

		target_check_word(target, page, (at / target->pages + page) % PAGE_WORDS);
	}
	return at;
}

static void require(int failed, const char *call)
{
	if (failed)
		die(EXIT_FAILED, "%s: %m", call);
}

/* Of three calls each: allocate memory and write-protect it, write it again, free it. */
static void make_call(uint64_t number, char **own)
{
	size_t bytes = OWN_PAGES * PAGE_BYTES;

	if (number % 3 == 2) {
		require(munmap(*own, bytes), "munmap");
		return;
	}
	if (number % 3 == 1) {
		require(mprotect(*own, bytes, PROT_READ | PROT_WRITE), "mprotect");
	} else {
		*own = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		require(*own == MAP_FAILED, "mmap");
	}
	for (size_t at = 0; at < bytes; at += PAGE_BYTES)
		(*own)[at] = number;
	if (number % 3 == 0)
		require(mprotect(*own, bytes, PROT_READ), "mprotect");
}

static void *run_reader(void *data)
{
	struct process *process = data;
	uint64_t at = read_pages(0, target->pages);

	atomic_fetch_add(&process->readers, 1);
	while (!atomic_load(&shared->stopping))
		at = read_pages(at, SLICE_PAGES);
	return NULL;
}

static void *run_caller(void *data)
{
	struct process *process = data;
	uint64_t at = read_pages(0, target->pages), due, now;
	char *own = NULL;

	atomic_fetch_add(&process->readers, 1);
	due = clock_ns();
	while (!atomic_load(&shared->stopping)) {
		at = read_pages(at, SLICE_PAGES);
		if (process->calls < atomic_load(&shared->allowed)) {
			make_call(process->calls, &own);
			atomic_fetch_add(&process->calls, 1);
		}
		due += tick_ns;
		now = clock_ns();
		if (due > now)
			sleep_ns(due - now);
	}
	return NULL;
}

static _Noreturn void run_process(unsigned int number)
{
	struct process *process = &shared->process[number];
	pthread_t reader, caller;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sysfs_disown();
	reader = cpu_pin_start(number, run_reader, process);
	caller = cpu_pin_start(number + 1, run_caller, process);
	pthread_join(caller, NULL);
	pthread_join(reader, NULL);
	_exit(EXIT_PASSED);
}

/* A process that ends before processes_stop() has found a wrong byte, and said so. */
static void check_alive(void)
{
	for (unsigned int i = 0; i < process_count; i++)
		if (waitpid(shared->process[i].pid, NULL, WNOHANG))
			die(EXIT_FAILED, "process %u of %u has ended", i, process_count);
}

void processes_start(const struct target *memory, unsigned int count, unsigned int calls_per_second)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	require(shared == MAP_FAILED, "mmap");
	target = memory;
	process_count = count;
	tick_ns = UINT64_C(1000000000) / calls_per_second;
	for (unsigned int i = 0; i < count; i++) {
		pid_t pid = fork();

		require(pid < 0, "fork");
		if (!pid)
			run_process(i);
		shared->process[i].pid = pid;
	}
	for (unsigned int i = 0; i < count; i++)
		while (atomic_load(&shared->process[i].readers) < THREADS) {
			check_alive();
			sleep_ns(POLL_NS);
		}
}

void processes_allow(uint64_t calls)
{
	atomic_store(&shared->allowed, calls);
}

bool processes_wait(uint64_t deadline)
{
	uint64_t allowed = atomic_load(&shared->allowed);

	for (unsigned int i = 0; i < process_count; i++)
		while (atomic_load(&shared->process[i].calls) < allowed) {
			check_alive();
			if (clock_ns() > deadline)
				return false;
			sleep_ns(POLL_NS);
		}
	return true;
}

uint64_t processes_calls(void)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < process_count; i++)
		sum += atomic_load(&shared->process[i].calls);
	return sum;
}

void processes_stop(void)
{
	int status;

	atomic_store(&shared->stopping, true);
	for (unsigned int i = 0; i < process_count; i++) {
		require(waitpid(shared->process[i].pid, &status, 0) < 0, "waitpid");
		if (status)
			die(EXIT_FAILED, "process %u of %u has ended with wait status %#x", i, process_count, status);
	}
	munmap(shared, sizeof(*shared));
}
