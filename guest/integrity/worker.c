// SPDX-License-Identifier: GPL-2.0
#include "worker.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "span.h"

/* No operation takes seconds, even on an emulated debug kernel, so a worker that takes this long hangs. */
#define STUCK_SECONDS 120

uint32_t worker_random(struct worker *worker, uint32_t limit)
{
	return (xorshift64(&worker->random) >> 32) * limit >> 32;
}

void worker_pause(struct worker *worker)
{
	sleep_ns(worker_random(worker, 2000000));
}

static void *worker_main(void *data)
{
	struct worker *worker = data;

	while (!atomic_load_explicit(&worker->mem->stop, memory_order_relaxed)) {
		if (worker->stressor->run_once(worker))
			atomic_fetch_add_explicit(&worker->ops, 1, memory_order_relaxed);
		else
			sched_yield();
		/*
		 * Without a rest more than ten threads contend for the mmap lock and for two CPUs, and
		 * pages hardly move at all, because a batch waits for each of its pages.
		 */
		if (!worker->stressor->eager)
			sleep_ns(worker_random(worker, worker->mem->options->rest_ms * 1000000));
	}
	return NULL;
}

void worker_start(struct worker *worker, const struct stressor *stressor, struct test_memory *mem,
		  uint64_t seed)
{
	int error;

	worker->stressor = stressor;
	worker->mem = mem;
	worker->scratch = mmap(NULL, SPAN_PAGES * PAGE_BYTES, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (worker->scratch == MAP_FAILED)
		die(EXIT_FAILED, "no memory for a worker: %m");
	/* The odd factor spreads small seeds over all bits; | 1 because xorshift maps 0 to 0. */
	worker->random = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15) | 1;
	error = pthread_create(&worker->thread, NULL, worker_main, worker);
	if (error)
		die(EXIT_FAILED, "cannot start %s: %s", stressor->name, strerror(error));
}

void worker_join(struct worker *worker)
{
	struct timespec deadline;

	clock_gettime(CLOCK_REALTIME, &deadline);
	deadline.tv_sec += STUCK_SECONDS;
	if (pthread_timedjoin_np(worker->thread, NULL, &deadline))
		die(EXIT_FAILED, "'%s' has been in one operation for %d s", worker->stressor->name,
		     STUCK_SECONDS);
	munmap(worker->scratch, SPAN_PAGES * PAGE_BYTES);
}
