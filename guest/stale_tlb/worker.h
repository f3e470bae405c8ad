/* SPDX-License-Identifier: GPL-2.0 */
/* A second thread that does one thing at a time while the first one gets in its way. */
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
	_Atomic uint32_t asked, begun, done;
	atomic_bool stop;
	uint64_t ns;		/* what the job takes, by experience */
};

void worker_start(struct worker *worker, struct fixture *fx, int cpu, void (*job)(struct fixture *fx));
void worker_stop(struct worker *worker);

/* Let it begin, and come back at a random moment of what it does. */
void worker_begin(struct worker *worker);
/* The same, but as soon as the moment has come, or when it is done. */
void worker_begin_until(struct worker *worker, bool (*moment)(const struct fixture *fx));
void worker_wait(struct worker *worker);

#endif
