// SPDX-License-Identifier: GPL-2.0
/*
 * A benchmark of mtcopy against memcpy() of the same folios by the same CPUs:
 * by one thread, and by 2, 4, 8 ... threads that each copy a fixed share, as
 * many as there are CPUs. Each method has its turn in each round. The benchmark
 * prints every sample and judges none; one with 0 ns has failed. Non-temporal
 * stores leave the folios out of the caches, which makes the next method
 * slower, so every second round reverses the order.
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
#define BENCH_THREADS	BENCH_FOLIOS	/* at most: each copies a folio */
#define BENCH_WARMUP	2	/* rounds before the first that is printed */
#define BENCH_ROUNDS	22
/* 2 methods of one thread, and 3 of 2, 4, 8 and 16 */
#define BENCH_METHODS	(2 + 3 * 4)

struct bench_method {
	const char *name;
	unsigned int threads;
	enum mtcopy_nontemporal nontemporal;
	/* Returns whether several threads copied, if there are to be several */
	bool (*copy)(struct ferry_batch *batch,
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

static bool bench_memcpy(struct ferry_batch *batch,
			 const struct bench_method *method)
{
	bench_share(batch, 0, 1);
	return true;
}

/*
 * The other threads exist, and wait, before the clock starts: the sample is the
 * time of a copy by several threads, without the creation of one.
 */
static struct bench_thread {
	struct ferry_batch *batch;
	unsigned int first;
	unsigned int step;
	struct completion begin;
	struct completion end;
} bench_others[BENCH_THREADS - 1];

static int bench_thread_fn(void *data)
{
	struct bench_thread *thread = data;

	for (;;) {
		wait_for_completion(&thread->begin);
		if (!thread->batch)
			break;
		bench_share(thread->batch, thread->first, thread->step);
		complete(&thread->end);
	}
	complete(&thread->end);
	return 0;
}

static void bench_begin(struct ferry_batch *batch, unsigned int threads)
{
	unsigned int i;

	for (i = 0; i < threads - 1; i++) {
		bench_others[i].batch = batch;
		bench_others[i].first = i + 1;
		bench_others[i].step = threads;
		complete(&bench_others[i].begin);
	}
}

static void bench_wait(unsigned int threads)
{
	unsigned int i;

	for (i = 0; i < threads - 1; i++)
		wait_for_completion(&bench_others[i].end);
}

static bool bench_threads(struct ferry_batch *batch,
			  const struct bench_method *method)
{
	bench_begin(batch, method->threads);
	bench_share(batch, 0, method->threads);
	bench_wait(method->threads);
	return true;
}

/*
 * If no other CPU is idle, mtcopy rejects the batch or, with non-temporal
 * stores, copies it alone.
 */
static bool bench_mtcopy(struct ferry_batch *batch,
			 const struct bench_method *method)
{
	mtcopy_tuning.threads = method->threads;
	mtcopy_tuning.nontemporal = method->nontemporal;
	return !mtcopy_copy(batch) && (!batch->serial || method->threads == 1);
}

/* Each method with 2, 4, 8 ... threads, but no more than CPUs. */
static unsigned int bench_methods(struct bench_method *methods,
				  unsigned int max_threads)
{
	unsigned int nr = 0, threads;

	methods[nr++] = (struct bench_method) {
		"memcpy", 1, MTCOPY_NEVER, bench_memcpy };
	methods[nr++] = (struct bench_method) {
		"mtcopy_nontemporal", 1, MTCOPY_ALWAYS, bench_mtcopy };
	for (threads = 2; threads <= max_threads; threads *= 2) {
		methods[nr++] = (struct bench_method) {
			"threads", threads, MTCOPY_NEVER, bench_threads };
		methods[nr++] = (struct bench_method) {
			"mtcopy", threads, MTCOPY_NEVER, bench_mtcopy };
		methods[nr++] = (struct bench_method) {
			"mtcopy_nontemporal", threads, MTCOPY_ALWAYS,
			bench_mtcopy };
	}
	return nr;
}

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

	ns = method->copy(batch, method) ? ktime_get_ns() - ns : 0;
	if (round < 0)
		return;
	kunit_info(test,
		   "ferry_copy_sample: {\"method\": \"%s\", \"threads\": %u, \"folio_bytes\": %lu, \"total_bytes\": %zu, \"round\": %d, \"ns\": %llu}",
		   method->name, method->threads, PAGE_SIZE << BENCH_ORDER,
		   batch->bytes, round, ns);
}

static void bench_start_threads(struct kunit *test, unsigned int threads)
{
	struct task_struct *task;
	unsigned int i;

	for (i = 0; i < threads - 1; i++) {
		init_completion(&bench_others[i].begin);
		init_completion(&bench_others[i].end);
		task = kthread_run(bench_thread_fn, &bench_others[i],
				   "ferry_bench/%u", i);
		KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	}
}

static void copy_bench(struct kunit *test)
{
	unsigned int threads = min(num_online_cpus(), BENCH_THREADS);
	struct mtcopy_tuning saved = mtcopy_tuning;
	struct bench_method methods[BENCH_METHODS];
	struct ferry_batch *batch;
	unsigned int i, nr;
	int round;

	batch = kunit_kzalloc(test, sizeof(*batch), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, batch);
	if (threads < 2)
		kunit_skip(test, "needs two CPUs");
	nr = bench_methods(methods, threads);
	bench_fill(test, batch);
	bench_start_threads(test, threads);
	for (round = -BENCH_WARMUP; round < BENCH_ROUNDS; round++)
		for (i = 0; i < nr; i++)
			bench_sample(test, batch,
				     &methods[round & 1 ? nr - 1 - i : i],
				     round);
	/* They end when there is no batch. */
	bench_begin(NULL, threads);
	bench_wait(threads);

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
