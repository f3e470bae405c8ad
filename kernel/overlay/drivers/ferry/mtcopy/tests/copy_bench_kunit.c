// SPDX-License-Identifier: GPL-2.0
/*
 * A benchmark of mtcopy against memcpy() of the same folios by the same CPUs:
 * by one thread, and by several threads that each copy a fixed share. Each
 * method has its turn in each round. The benchmark prints every sample and
 * judges none. Non-temporal stores leave the folios out of the caches, which
 * makes the next method slower, so every second round reverses the order.
 */

#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/string.h>

#include "../internal.h"

#define BENCH_ORDER	9
#define BENCH_FOLIOS	16
#define BENCH_WARMUP	2	/* rounds before the first that is printed */
#define BENCH_ROUNDS	22
#define BENCH_THREADS	2

struct bench_method {
	const char *name;
	unsigned int threads;
	enum mtcopy_nontemporal nontemporal;
	void (*copy)(struct ferry_batch *batch,
		     const struct bench_method *method);
};

static void bench_share(struct ferry_batch *batch, unsigned int first,
			unsigned int step)
{
	unsigned int i;

	for (i = first; i < batch->nr; i += step)
		memcpy(folio_address(batch->pairs[i].dst),
		       folio_address(batch->pairs[i].src),
		       folio_size(batch->pairs[i].src));
}

static void bench_memcpy(struct ferry_batch *batch,
			 const struct bench_method *method)
{
	bench_share(batch, 0, 1);
}

/*
 * The second thread exists, and waits, before the clock starts: the sample is
 * the time of a copy by two threads, without the creation of one.
 */
static struct bench_thread {
	struct task_struct *task;
	struct ferry_batch *batch;
	struct completion begin;
	struct completion end;
} bench_second;

static int bench_thread_fn(void *data)
{
	struct bench_thread *thread = data;

	for (;;) {
		wait_for_completion(&thread->begin);
		if (!thread->batch)
			break;
		bench_share(thread->batch, 1, BENCH_THREADS);
		complete(&thread->end);
	}
	complete(&thread->end);
	return 0;
}

static void bench_threads(struct ferry_batch *batch,
			  const struct bench_method *method)
{
	bench_second.batch = batch;
	complete(&bench_second.begin);
	bench_share(batch, 0, BENCH_THREADS);
	wait_for_completion(&bench_second.end);
}

/* The move phase copies what mtcopy rejects. */
static void bench_mtcopy(struct ferry_batch *batch,
			 const struct bench_method *method)
{
	mtcopy_tuning.threads = method->threads;
	mtcopy_tuning.nontemporal = method->nontemporal;
	if (mtcopy_copy(batch))
		bench_memcpy(batch, method);
}

static const struct bench_method bench_methods[] = {
	{ "memcpy", 1, MTCOPY_NEVER, bench_memcpy },
	{ "mtcopy_nontemporal", 1, MTCOPY_ALWAYS, bench_mtcopy },
	{ "threads", BENCH_THREADS, MTCOPY_NEVER, bench_threads },
	{ "mtcopy", BENCH_THREADS, MTCOPY_NEVER, bench_mtcopy },
	{ "mtcopy_nontemporal", BENCH_THREADS, MTCOPY_ALWAYS, bench_mtcopy },
};

static void bench_fill(struct kunit *test, struct ferry_batch *batch)
{
	unsigned int i;

	for (i = 0; i < BENCH_FOLIOS; i++) {
		struct ferry_pair *pair = &batch->pairs[i];

		pair->src = folio_alloc(GFP_KERNEL | __GFP_COMP, BENCH_ORDER);
		pair->dst = folio_alloc(GFP_KERNEL | __GFP_COMP, BENCH_ORDER);
		KUNIT_ASSERT_NOT_NULL(test, pair->src);
		KUNIT_ASSERT_NOT_NULL(test, pair->dst);
		memset(folio_address(pair->src), i + 1, folio_size(pair->src));
		pair->offset = batch->bytes;
		batch->bytes += folio_size(pair->src);
		batch->nr++;
	}
}

static void bench_sample(struct kunit *test, struct ferry_batch *batch,
			 const struct bench_method *method, int round)
{
	u64 ns = ktime_get_ns();

	method->copy(batch, method);
	ns = ktime_get_ns() - ns;
	if (round < 0)
		return;
	kunit_info(test,
		   "ferry_copy_sample: {\"method\": \"%s\", \"threads\": %u, \"folio_bytes\": %lu, \"total_bytes\": %zu, \"round\": %d, \"ns\": %llu}",
		   method->name, method->threads, PAGE_SIZE << BENCH_ORDER,
		   batch->bytes, round, ns);
}

static void copy_bench(struct kunit *test)
{
	unsigned int i, last = ARRAY_SIZE(bench_methods) - 1;
	struct mtcopy_tuning saved = mtcopy_tuning;
	struct ferry_batch *batch;
	int round;

	batch = kunit_kzalloc(test, sizeof(*batch), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, batch);
	if (num_online_cpus() < BENCH_THREADS)
		kunit_skip(test, "needs %d CPUs", BENCH_THREADS);
	bench_fill(test, batch);

	init_completion(&bench_second.begin);
	init_completion(&bench_second.end);
	bench_second.task = kthread_run(bench_thread_fn, &bench_second,
					"ferry_bench");
	KUNIT_ASSERT_FALSE(test, IS_ERR(bench_second.task));
	for (round = -BENCH_WARMUP; round < BENCH_ROUNDS; round++)
		for (i = 0; i <= last; i++)
			bench_sample(test, batch,
				     &bench_methods[round & 1 ? last - i : i],
				     round);
	bench_second.batch = NULL;
	complete(&bench_second.begin);
	wait_for_completion(&bench_second.end);

	mtcopy_tuning = saved;
	while (batch->nr--) {
		folio_put(batch->pairs[batch->nr].src);
		folio_put(batch->pairs[batch->nr].dst);
	}
}

static struct kunit_case copy_bench_cases[] = {
	KUNIT_CASE_SLOW(copy_bench),
	{}
};

static struct kunit_suite copy_bench_suite = {
	.name = "ferry_copy_bench",
	.test_cases = copy_bench_cases,
};

kunit_test_suite(copy_bench_suite);
