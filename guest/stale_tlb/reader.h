/* SPDX-License-Identifier: GPL-2.0 */
/* A thread that reads pages and keeps their TLB entries, because it never sleeps unless requested. */
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
	char *base;
	size_t pages;
	bool calls;			/* call the code in the pages instead of reading them */
	_Atomic uint32_t requested, done;	/* number of the last sample */
	_Atomic uint32_t sleep_request;
	atomic_bool stop;
	struct read_result results[MAX_PAGES];
};

/* The reader is in shared memory, which fork(2) does not write-protect, so its own stores cause no faults. */
struct reader *reader_new(int cpu);
void reader_free(struct reader *reader);

/* Let the reader read the first word of each page, once and in order. Returns when `results` holds the words. */
void reader_sample(struct reader *reader, char *base, size_t pages);

/* Let the reader sleep in the kernel until the next sample. */
void reader_sleep(struct reader *reader);

/* Pin the reader again to its CPU, which was offline. */
bool reader_pin(const struct reader *reader);

/* Handle faults of the accesses below, in any thread. They return false if they fault. */
void guard_faults(void);
bool guarded_read(void *at, uint64_t *value);
bool guarded_write(void *at, uint64_t value);

#endif
