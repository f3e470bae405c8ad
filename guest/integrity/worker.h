/* SPDX-License-Identifier: GPL-2.0 */
/* Stressors, which interfere with migration, and workers, the threads that run them. */
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
	/* Set up; NULL, or the reason why the stressor cannot run here. Optional. */
	const char *(*prepare)(struct test_memory *mem);
	/* Run one operation; false if it did nothing, e.g. because another worker had claimed the page. */
	bool (*run_once)(struct worker *worker);
	/* Tear down, after all workers have exited. Optional. */
	void (*finish)(struct test_memory *mem);
	bool many;			/* run by --threads workers, else by one */
	bool eager;			/* no rest between operations: more CPU time and locks than others */
	/* Counters of /proc/vmstat: if none of them grows, the stressor had no effect. */
	const char *vmstat_counter[2];
};

struct worker {
	const struct stressor *stressor;
	struct test_memory *mem;
	void *scratch;			/* SPAN_PAGES pages that no mover moves */
	atomic_uint_fast64_t ops;
	uint64_t random;
	pthread_t thread;
};

/* Return a random number below `limit`. */
uint32_t worker_random(struct worker *worker, uint32_t limit);

/* Sleep for up to 2 ms, about the time that a batch takes to migrate. */
void worker_pause(struct worker *worker);

void worker_start(struct worker *worker, const struct stressor *stressor, struct test_memory *mem,
		  uint64_t seed);

/* Wait for a worker after mem->stop was set; exit with EXIT_FAILED if it hangs. */
void worker_join(struct worker *worker);

#endif
