// SPDX-License-Identifier: GPL-2.0
#include "reader.h"

#include <linux/futex.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util.h"

#define SPINS 1000
#define DOZE_NS 2000000		/* for the reader to be asleep */

static _Thread_local sigjmp_buf *volatile guard;

static void on_fault(int signal, siginfo_t *info, void *context)
{
	(void)context;
	if (guard)
		siglongjmp(*guard, 1);
	/* News of a poisoned page that this thread did not touch. */
	if (signal == SIGBUS && (info->si_code == BUS_MCEERR_AO || info->si_code == BUS_MCEERR_AR))
		return;
	/* Comes again, and ends the program. */
	sigaction(signal, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
}

void guard_faults(void)
{
	struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER };

	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
}

bool guarded_read(const void *at, uint64_t *value)
{
	sigjmp_buf place;

	guard = &place;
	/* The mask is not saved: that would be a system call. */
	if (sigsetjmp(place, 0)) {
		guard = NULL;
		return false;
	}
	*value = *(const volatile uint64_t *)at;
	guard = NULL;
	return true;
}

bool guarded_write(void *at, uint64_t value)
{
	sigjmp_buf place;

	guard = &place;
	if (sigsetjmp(place, 0)) {
		guard = NULL;
		return false;
	}
	*(volatile uint64_t *)at = value;
	guard = NULL;
	return true;
}

bool reader_pin(const struct reader *reader)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(reader->cpu, &cpus);
	return !pthread_setaffinity_np(reader->thread, sizeof(cpus), &cpus);
}

static bool guarded_call(const void *at, uint64_t *value)
{
	sigjmp_buf place;

	guard = &place;
	if (sigsetjmp(place, 0)) {
		guard = NULL;
		return false;
	}
	*value = ((uint32_t (*)(void))(uintptr_t)at)();
	guard = NULL;
	return true;
}

static void look(struct reader *reader)
{
	bool (*see)(const void *at, uint64_t *value) = reader->calls ? guarded_call : guarded_read;

	for (size_t i = 0; i < reader->pages; i++) {
		struct read_result *result = &reader->results[i];

		result->fault = !see(reader->base + i * PAGE_BYTES, &result->value);
	}
}

static void *read_on(void *arg)
{
	struct reader *reader = arg;
	uint32_t seen = 0, now;

	cpu_pin(reader->cpu);
	while (!atomic_load(&reader->stop)) {
		now = atomic_load(&reader->asked);
		if (now != seen) {
			look(reader);
			seen = now;
			atomic_store(&reader->done, seen);
		} else if (atomic_load(&reader->sleep_request)) {
			syscall(SYS_futex, &reader->asked, FUTEX_WAIT, seen, NULL, NULL, 0);
		}
	}
	return NULL;
}

struct reader *reader_new(int cpu)
{
	struct reader *reader = mmap(NULL, sizeof(*reader), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (reader == MAP_FAILED)
		die(EXIT_FAILED, "no shared memory: %m");
	reader->cpu = cpu;
	return reader;
}

static void start(struct reader *reader)
{
	if (!reader->started && pthread_create(&reader->thread, NULL, read_on, reader))
		die(EXIT_FAILED, "no thread for the reader");
	reader->started = true;
}

static void wake(struct reader *reader)
{
	if (atomic_exchange(&reader->sleep_request, 0))
		syscall(SYS_futex, &reader->asked, FUTEX_WAKE, 1, NULL, NULL, 0);
}

void reader_sample(struct reader *reader, const char *base, size_t pages)
{
	uint32_t asked = atomic_load(&reader->asked) + 1;

	if (pages > MAX_PAGES)
		die(EXIT_FAILED, "%zu pages are too many for the reader", pages);
	start(reader);
	reader->base = base;
	reader->pages = pages;
	/* Sequentially consistent: whatever was done before is over when the reader sees it. */
	atomic_store(&reader->asked, asked);
	wake(reader);
	for (unsigned int spins = 0; atomic_load(&reader->done) != asked; spins++)
		if (spins > SPINS)
			sched_yield();
}

void reader_sleep(struct reader *reader)
{
	start(reader);
	atomic_store(&reader->sleep_request, 1);
	sleep_ns(DOZE_NS);
}

void reader_free(struct reader *reader)
{
	if (reader->started) {
		atomic_store(&reader->stop, true);
		atomic_fetch_add(&reader->asked, 1);
		wake(reader);
		pthread_join(reader->thread, NULL);
	}
	munmap(reader, sizeof(*reader));
}
