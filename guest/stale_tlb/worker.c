// SPDX-License-Identifier: GPL-2.0
#include "worker.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util.h"

static void futex(_Atomic uint32_t *word, int operation, uint32_t value)
{
	syscall(SYS_futex, word, operation, value, NULL, NULL, 0);
}

static void *worker_main(void *arg)
{
	struct worker *worker = arg;
	uint32_t number = 0;

	cpu_pin(worker->cpu);
	while (!atomic_load(&worker->stop)) {
		uint64_t start, ns;

		if (atomic_load(&worker->requested) == number) {
			futex(&worker->requested, FUTEX_WAIT, number);
			continue;
		}
		start = clock_ns();
		atomic_store(&worker->begun, ++number);
		worker->job(worker->fx);
		ns = clock_ns() - start;
		/* A moving average that starts with the first time. */
		worker->ns = worker->ns ? (7 * worker->ns + ns) / 8 : ns;
		atomic_store(&worker->done, number);
	}
	return NULL;
}

void worker_start(struct worker *worker, struct fixture *fx, int cpu, void (*job)(struct fixture *fx))
{
	*worker = (struct worker){ .fx = fx, .cpu = cpu, .job = job };
	if (fx->cpu_count < 3 && !fx->options->off)
		test_skip(fx, "needs three CPUs");
	if (pthread_create(&worker->thread, NULL, worker_main, worker))
		die(EXIT_FAILED, "no thread for the worker");
}

void worker_stop(struct worker *worker)
{
	atomic_store(&worker->stop, true);
	/* Wake the worker, which checks `stop` before it runs the job. */
	atomic_fetch_add(&worker->requested, 1);
	futex(&worker->requested, FUTEX_WAKE, 1);
	pthread_join(worker->thread, NULL);
}

static void begin(struct worker *worker)
{
	uint32_t number = atomic_load(&worker->requested) + 1;

	atomic_store(&worker->requested, number);
	futex(&worker->requested, FUTEX_WAKE, 1);
	while (atomic_load(&worker->begun) != number)
		sched_yield();
}

static bool busy(struct worker *worker)
{
	return atomic_load(&worker->done) != atomic_load(&worker->requested);
}

void worker_begin(struct worker *worker)
{
	uint64_t until;

	begin(worker);
	until = clock_ns() + (worker->ns ? fixture_random(worker->fx, worker->ns) : 0);
	while (clock_ns() < until)
		;
}

void worker_begin_until(struct worker *worker, bool (*condition)(const struct fixture *fx))
{
	begin(worker);
	while (busy(worker) && !condition(worker->fx))
		;
}

void worker_wait(struct worker *worker)
{
	while (busy(worker))
		sched_yield();
}
