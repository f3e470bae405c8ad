// SPDX-License-Identifier: GPL-2.0
#include "worker.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util.h"

static void futex(_Atomic uint32_t *word, int what, uint32_t value)
{
	syscall(SYS_futex, word, what, value, NULL, NULL, 0);
}

static void work(struct worker *worker, uint32_t turn)
{
	uint64_t start = clock_ns(), took;

	atomic_store(&worker->begun, turn);
	worker->job(worker->fx);
	took = clock_ns() - start;
	/* A moving average; the first is taken as it is. */
	worker->ns = worker->ns ? (7 * worker->ns + took) / 8 : took;
}

static void *work_on(void *arg)
{
	struct worker *worker = arg;
	uint32_t turn = 0;

	cpu_pin(worker->cpu);
	while (!atomic_load(&worker->stop)) {
		if (atomic_load(&worker->asked) == turn) {
			futex(&worker->asked, FUTEX_WAIT, turn);
			continue;
		}
		work(worker, ++turn);
		atomic_store(&worker->done, turn);
	}
	return NULL;
}

void worker_start(struct worker *worker, struct fixture *fx, int cpu, void (*job)(struct fixture *fx))
{
	*worker = (struct worker){ .fx = fx, .cpu = cpu, .job = job };
	if (fx->cpu_count < 3 && !fx->options->off)
		test_skip(fx, "needs three CPUs");
	if (pthread_create(&worker->thread, NULL, work_on, worker))
		die(EXIT_FAILED, "no thread for the worker");
}

void worker_stop(struct worker *worker)
{
	atomic_store(&worker->stop, true);
	/* A turn that is not taken: the worker looks at `stop` first. */
	atomic_fetch_add(&worker->asked, 1);
	futex(&worker->asked, FUTEX_WAKE, 1);
	pthread_join(worker->thread, NULL);
}

static void begin(struct worker *worker)
{
	uint32_t turn = atomic_load(&worker->asked) + 1;

	atomic_store(&worker->asked, turn);
	futex(&worker->asked, FUTEX_WAKE, 1);
	while (atomic_load(&worker->begun) != turn)
		sched_yield();
}

static bool busy(struct worker *worker)
{
	return atomic_load(&worker->done) != atomic_load(&worker->asked);
}

void worker_begin(struct worker *worker)
{
	uint64_t until;

	begin(worker);
	until = clock_ns() + (worker->ns ? fixture_random(worker->fx, worker->ns) : 0);
	while (clock_ns() < until)
		;
}

void worker_begin_until(struct worker *worker, bool (*moment)(const struct fixture *fx))
{
	begin(worker);
	while (busy(worker) && !moment(worker->fx))
		;
}

void worker_wait(struct worker *worker)
{
	while (busy(worker))
		sched_yield();
}
