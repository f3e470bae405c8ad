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
	worker->job(worker->bed);
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

void worker_start(struct worker *worker, struct bed *bed, int cpu, void (*job)(struct bed *bed))
{
	*worker = (struct worker){ .bed = bed, .cpu = cpu, .job = job };
	if (bed->cpu_count < 3 && !bed->options->off)
		bed_skip(bed, "needs three CPUs");
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
	until = clock_ns() + (worker->ns ? bed_random(worker->bed, worker->ns) : 0);
	while (clock_ns() < until)
		;
}

void worker_begin_until(struct worker *worker, bool (*moment)(const struct bed *bed))
{
	begin(worker);
	while (busy(worker) && !moment(worker->bed))
		;
}

void worker_wait(struct worker *worker)
{
	while (busy(worker))
		sched_yield();
}
