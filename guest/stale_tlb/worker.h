/* SPDX-License-Identifier: GPL-2.0 */
/* A thread that runs one job at a time while the main thread interferes with it. */
#ifndef STALE_TLB_WORKER_H
#define STALE_TLB_WORKER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "fixture.h"

struct worker {
	pthread_t thread;
	struct fixture *fx;
	int cpu;
	void (*job)(struct fixture *fx);
	_Atomic uint32_t requested, begun, done;	/* number of the last run */
	atomic_bool stop;
	uint64_t ns;		/* a moving average of the time that the job takes */
};

void worker_start(struct worker *worker, struct fixture *fx, int cpu, void (*job)(struct fixture *fx));
void worker_stop(struct worker *worker);

/* Start the job, and return at a random time while it runs. */
void worker_begin(struct worker *worker);
/* Start the job, and return as soon as condition() is true or the job is done. */
void worker_begin_until(struct worker *worker, bool (*condition)(const struct fixture *fx));
void worker_wait(struct worker *worker);

#endif
