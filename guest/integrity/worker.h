/* SPDX-License-Identifier: GPL-2.0 */
/* Stressors, which get in the way of migration, and workers: the threads that play them. */
#ifndef INTEGRITY_WORKER_H
#define INTEGRITY_WORKER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "test_memory.h"

struct worker;

struct stressor {
	const char *name;
	/* Set the stage; NULL or the reason why this stressor cannot play here. Optional. */
	const char *(*prepare)(struct test_memory *mem);
	/* Do it once; false if there was nothing to do, e.g. the page was another's. */
	bool (*run_once)(struct worker *worker);
	/* After all workers have gone. Optional. */
	void (*finish)(struct test_memory *mem);
	bool many;			/* played by --threads workers, else by one */
	bool eager;			/* ops again at once; the others rest, and leave it CPUs and locks */
	/* Counters of /proc/vmstat one of which must have grown, or nothing of the kind has happened. */
	const char *vmstat_counter[2];
};

struct worker {
	const struct stressor *stressor;
	struct test_memory *mem;
	void *scratch;			/* SPAN_PAGES pages that nobody moves */
	atomic_uint_fast64_t ops;
	uint64_t random;
	pthread_t thread;
};

/* A random number below `limit`. */
uint32_t worker_random(struct worker *worker, uint32_t limit);

/* Let others run, for up to 2 ms: about the time in which a batch of pages is moved. */
void worker_pause(struct worker *worker);

void worker_start(struct worker *worker, const struct stressor *stressor, struct test_memory *mem,
		  uint64_t seed);

/* Wait for the end of an worker whose mem is told to stop. Stuck: EXIT_FAILED. */
void worker_join(struct worker *worker);

#endif
