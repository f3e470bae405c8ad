/* SPDX-License-Identifier: GPL-2.0 */
/* The basis of every guest program: one clear error and an exit status, time, pages, CPUs, random numbers. */
#ifndef GUEST_UTIL_H
#define GUEST_UTIL_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

#define PAGE_BYTES ((size_t)4096)
#define PAGE_WORDS (PAGE_BYTES / sizeof(uint64_t))

enum exit_status {
	EXIT_PASSED = 0,
	EXIT_FAILED = 1,	/* a check failed */
	EXIT_USAGE = 2,		/* the command line is wrong */
	EXIT_MISSING = 4,	/* the kernel or the machine lacks a feature; also kselftest's "skipped" */
};

/* Print "PROGRAM: message" on stderr and exit. %m names errno. */
_Noreturn void die(enum exit_status status, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* CLOCK_MONOTONIC in ns. */
static inline uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * UINT64_C(1000000000) + now.tv_nsec;
}

static inline void sleep_ns(uint64_t ns)
{
	struct timespec time = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };

	nanosleep(&time, NULL);
}

/* The next 64-bit number of a xorshift generator; *state must not start as 0, and then never becomes 0. */
static inline uint64_t xorshift64(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* The number of CPUs that this program may use. */
unsigned int cpus_usable(void);

/* Pin the calling thread to CPU number `cpu`. Ends the program with EXIT_FAILED if the kernel refuses. */
void cpu_pin(int cpu);

/*
 * Start a thread that is pinned to the n-th of the usable CPUs, modulo their number. Ends the program with EXIT_FAILED
 * if the thread cannot be started.
 */
pthread_t cpu_pin_start(unsigned int n, void *(*run)(void *), void *argument);

#endif
