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
#define SLEEP_NS 2000000	/* time for the reader to fall asleep */

static _Thread_local sigjmp_buf *volatile guard;

static void on_fault(int signal, siginfo_t *info, void *context)
{
	(void)context;
	if (guard)
		siglongjmp(*guard, 1);
	/* The notification of a poisoned page that this thread did not access. */
	if (signal == SIGBUS && (info->si_code == BUS_MCEERR_AO || info->si_code == BUS_MCEERR_AR))
		return;
	/* The signal comes again and ends the program. */
	sigaction(signal, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
}

void guard_faults(void)
{
	struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER };

	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
}

enum access { ACCESS_READ, ACCESS_WRITE, ACCESS_CALL };

static bool guarded_access(enum access access, void *at, uint64_t *value)
{
	sigjmp_buf place;

	guard = &place;
	/* Do not save the signal mask, which would take a system call. */
	if (sigsetjmp(place, 0)) {
		guard = NULL;
		return false;
	}
	if (access == ACCESS_READ)
		*value = *(volatile uint64_t *)at;
	else if (access == ACCESS_WRITE)
		*(volatile uint64_t *)at = *value;
	else
		*value = ((uint32_t (*)(void))(uintptr_t)at)();
	guard = NULL;
	return true;
}

bool guarded_read(void *at, uint64_t *value)
{
	return guarded_access(ACCESS_READ, at, value);
}

bool guarded_write(void *at, uint64_t value)
{
	return guarded_access(ACCESS_WRITE, at, &value);
}

bool reader_pin(const struct reader *reader)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(reader->cpu, &cpus);
	return !pthread_setaffinity_np(reader->thread, sizeof(cpus), &cpus);
}

static void *reader_main(void *arg)
{
	struct reader *reader = arg;
	uint32_t sampled = 0, now;

	cpu_pin(reader->cpu);
	while (!atomic_load(&reader->stop)) {
		now = atomic_load(&reader->requested);
		if (now != sampled) {
			enum access access = reader->calls ? ACCESS_CALL : ACCESS_READ;

			for (size_t i = 0; i < reader->pages; i++) {
				struct read_result *result = &reader->results[i];
				char *page = reader->base + i * PAGE_BYTES;

				result->fault = !guarded_access(access, page, &result->value);
			}
			sampled = now;
			atomic_store(&reader->done, sampled);
		} else if (atomic_load(&reader->sleep_request)) {
			syscall(SYS_futex, &reader->requested, FUTEX_WAIT, sampled, NULL, NULL, 0);
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
	if (!reader->started && pthread_create(&reader->thread, NULL, reader_main, reader))
		die(EXIT_FAILED, "no thread for the reader");
	reader->started = true;
}

static void wake(struct reader *reader)
{
	if (atomic_exchange(&reader->sleep_request, 0))
		syscall(SYS_futex, &reader->requested, FUTEX_WAKE, 1, NULL, NULL, 0);
}

void reader_sample(struct reader *reader, char *base, size_t pages)
{
	uint32_t requested = atomic_load(&reader->requested) + 1;

	if (pages > MAX_PAGES)
		die(EXIT_FAILED, "the reader cannot read %zu pages", pages);
	start(reader);
	reader->base = base;
	reader->pages = pages;
	/* Sequentially consistent: all that this thread did before is done when the reader sees the request. */
	atomic_store(&reader->requested, requested);
	wake(reader);
	for (unsigned int spins = 0; atomic_load(&reader->done) != requested; spins++)
		if (spins > SPINS)
			sched_yield();
}

void reader_sleep(struct reader *reader)
{
	start(reader);
	atomic_store(&reader->sleep_request, 1);
	sleep_ns(SLEEP_NS);
}

void reader_free(struct reader *reader)
{
	if (reader->started) {
		atomic_store(&reader->stop, true);
		atomic_fetch_add(&reader->requested, 1);
		wake(reader);
		pthread_join(reader->thread, NULL);
	}
	munmap(reader, sizeof(*reader));
}
