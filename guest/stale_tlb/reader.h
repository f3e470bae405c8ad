/* SPDX-License-Identifier: GPL-2.0 */
/* A thread that has read some pages and holds on to their TLB entries: it never sleeps unless it is told to. */
#ifndef STALE_TLB_READER_H
#define STALE_TLB_READER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_PAGES 1024

struct read_result {
	uint64_t value;
	bool fault;
};

struct reader {
	pthread_t thread;
	bool started;
	int cpu;
	const char *base;
	size_t pages;
	bool calls;			/* what it looks at are functions: it calls them */
	_Atomic uint32_t asked, done;
	_Atomic uint32_t sleep_request;
	atomic_bool stop;
	struct read_result results[MAX_PAGES];
};

/* In shared memory: fork(2) does not write-protect it, so the reader's own stores cause no faults. */
struct reader *reader_new(int cpu);
void reader_free(struct reader *reader);

/* Read the first word of each page, once, in cmd; back when the reader has done so. */
void reader_sample(struct reader *reader, const char *base, size_t pages);

/* Let it sleep in the kernel until the next look. */
void reader_sleep(struct reader *reader);

/* Pin it once more to its CPU, which was away. */
bool reader_pin(const struct reader *reader);

/* Accesses that a fault ends, in any thread. False: they faulted. */
void guard_faults(void);
bool guarded_read(const void *at, uint64_t *value);
bool guarded_write(void *at, uint64_t value);

#endif
