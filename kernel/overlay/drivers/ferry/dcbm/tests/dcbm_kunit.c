// SPDX-License-Identifier: GPL-2.0
/*
 * dcbm on an engine of which a test decides when it accepts descriptors, when
 * it completes them, and how long the task that submits gets no CPU. No byte is
 * copied: the status of a folio tells what dcbm believes.
 */

#include <kunit/device.h>
#include <kunit/static_stub.h>
#include <kunit/test.h>
#include <linux/cleanup.h>
#include <linux/delay.h>
#include <linux/device.h>
#include <linux/dma-mapping.h>
#include <linux/dmaengine.h>
#include <linux/hrtimer.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/sizes.h>
#include <linux/string.h>

#include "../../../dma/dmaengine.h"
#include "../internal.h"

#define FAKE_DESCS	256
/* timeout_ms of the tests, and a time in which it certainly passes. */
#define FAKE_TIMEOUT_MS	100
#define FAKE_LATE_MS	(FAKE_TIMEOUT_MS + 50)
/* In which an engine with @room completes so many descriptors. */
#define FAKE_GROUP_NS	(4 * NSEC_PER_MSEC)

/**
 * struct fake_engine - a DMA engine with one channel
 * @dma:	the device of dmaengine
 * @chan:	its channel
 * @descs:	all descriptors that it has in its life
 * @nr:		number of them that were submitted
 * @nr_issued:	of those, issued
 * @nr_done:	of those, completed
 * @nr_preps:	calls of its prep
 * @nr_issues:	calls of its issue_pending
 * @fails:	it fails to submit a descriptor
 * @room:	if not 0, descriptors that it completes at a time
 * @result:	of the descriptors that it completes
 * @prep:	called by prep; false to refuse the descriptor
 * @issue:	called by issue_pending
 * @timer:	for completions later on
 */
struct fake_engine {
	struct dma_device dma;
	struct dma_chan chan;
	struct dma_async_tx_descriptor descs[FAKE_DESCS];
	unsigned int nr;
	unsigned int nr_issued;
	unsigned int nr_done;
	unsigned int nr_preps;
	unsigned int nr_issues;
	bool fails;
	unsigned int room;
	enum dmaengine_tx_result result;
	bool (*prep)(struct fake_engine *engine);
	void (*issue)(struct fake_engine *engine);
	struct hrtimer timer;
};

static struct dcbm_tuning fake_saved;
/* Channels that hung before the test. */
static s64 fake_hung;

static struct fake_engine *to_fake_engine(struct dma_chan *chan)
{
	return container_of(chan, struct fake_engine, chan);
}

static dma_cookie_t fake_submit(struct dma_async_tx_descriptor *tx)
{
	if (to_fake_engine(tx->chan)->fails)
		return -EIO;
	to_fake_engine(tx->chan)->nr++;
	return dma_cookie_assign(tx);
}

static struct dma_async_tx_descriptor *
fake_prep(struct dma_chan *chan, dma_addr_t dst, dma_addr_t src, size_t len,
	  unsigned long flags)
{
	struct fake_engine *engine = to_fake_engine(chan);
	struct dma_async_tx_descriptor *tx;

	engine->nr_preps++;
	if (engine->nr == FAKE_DESCS || (engine->prep && !engine->prep(engine)))
		return NULL;
	tx = &engine->descs[engine->nr];
	dma_async_tx_descriptor_init(tx, chan);
	tx->flags = flags;
	tx->tx_submit = fake_submit;
	return tx;
}

static void fake_issue_pending(struct dma_chan *chan)
{
	struct fake_engine *engine = to_fake_engine(chan);

	WRITE_ONCE(engine->nr_issued, engine->nr);
	engine->nr_issues++;
	engine->issue(engine);
}

static enum dma_status fake_status(struct dma_chan *chan, dma_cookie_t cookie,
				   struct dma_tx_state *state)
{
	return dma_cookie_status(chan, cookie, state);
}

/* Complete what was issued before the call. */
static void fake_complete(struct fake_engine *engine)
{
	struct dmaengine_result result = { .result = engine->result };
	unsigned int nr_issued = READ_ONCE(engine->nr_issued);

	if (engine->room)
		nr_issued = min(nr_issued, engine->nr_done + engine->room);
	while (engine->nr_done < nr_issued) {
		struct dma_async_tx_descriptor *tx;

		tx = &engine->descs[engine->nr_done++];
		dma_cookie_complete(tx);
		dmaengine_desc_get_callback_invoke(tx, &result);
	}
}

/* Complete late, in a softirq, as drivers do by a tasklet. */
static enum hrtimer_restart fake_timer_fn(struct hrtimer *timer)
{
	struct fake_engine *engine = container_of(timer, struct fake_engine,
						  timer);

	fake_complete(engine);
	if (engine->nr_done == READ_ONCE(engine->nr_issued))
		return HRTIMER_NORESTART;
	hrtimer_forward_now(timer, FAKE_GROUP_NS);
	return HRTIMER_RESTART;
}

static void fake_complete_in(struct fake_engine *engine, u64 ns)
{
	hrtimer_start(&engine->timer, ns_to_ktime(ns), HRTIMER_MODE_REL_SOFT);
}

/* Let dcbm use the engine and no other. */
static void fake_select(struct kunit *test, struct fake_engine *engine)
{
	struct dma_device *dma = &engine->dma;

	engine->chan.device = dma;
	dma_cookie_init(&engine->chan);
	INIT_LIST_HEAD(&dma->channels);
	list_add_tail(&engine->chan.device_node, &dma->channels);
	dma_cap_set(DMA_MEMCPY, dma->cap_mask);
	dma->device_prep_dma_memcpy = fake_prep;
	dma->device_issue_pending = fake_issue_pending;
	dma->device_tx_status = fake_status;
	KUNIT_ASSERT_EQ(test, dma_async_device_register(dma), 0);
	KUNIT_EXPECT_EQ(test, dcbm_set_devices(dev_name(dma->dev)), 0);
	KUNIT_EXPECT_EQ(test, dcbm_acquire_all(false), 0);
	test->priv = engine;
}

/* An engine that completes descriptors at once, unless the test changes it. */
static struct fake_engine *fake_engine(struct kunit *test, const char *driver)
{
	struct device *dev = kunit_device_register(test, driver);
	struct fake_engine *engine;

	KUNIT_ASSERT_FALSE(test, IS_ERR(dev));
	KUNIT_ASSERT_EQ(test, 0,
			dma_coerce_mask_and_coherent(dev, DMA_BIT_MASK(64)));
	engine = kunit_kzalloc(test, sizeof(*engine), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, engine);
	engine->dma.dev = dev;
	engine->issue = fake_complete;
	hrtimer_setup(&engine->timer, fake_timer_fn, CLOCK_MONOTONIC,
		      HRTIMER_MODE_REL_SOFT);
	fake_select(test, engine);
	return engine;
}

KUNIT_DEFINE_ACTION_WRAPPER(fake_folio_put, folio_put, struct folio *);

static struct folio *fake_folio(struct kunit *test, size_t bytes)
{
	struct folio *folio = folio_alloc(GFP_KERNEL, get_order(bytes));

	KUNIT_ASSERT_NOT_NULL(test, folio);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, fake_folio_put,
							   folio));
	return folio;
}

static struct ferry_batch *fake_batch(struct kunit *test, unsigned int nr,
				      size_t bytes)
{
	struct ferry_batch *batch;

	batch = kunit_kzalloc(test, sizeof(*batch), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, batch);
	batch->max_us = 8 * USEC_PER_MSEC;
	while (batch->nr < nr) {
		struct ferry_pair *pair = &batch->pairs[batch->nr++];

		pair->src = fake_folio(test, bytes);
		pair->dst = fake_folio(test, bytes);
		pair->offset = batch->bytes;
		pair->status = -EINPROGRESS;
		batch->bytes += folio_size(pair->src);
	}
	batch->src_nid = folio_nid(batch->pairs[0].src);
	batch->dst_nid = folio_nid(batch->pairs[0].dst);
	return batch;
}

/*
 * A job that the engine's channel copies alone. Unless @rate is 0 that many
 * bytes per us are expected of it, so that its first transfer is a large one.
 */
static struct dcbm_job *fake_job(struct kunit *test, struct ferry_batch *batch,
				 unsigned long rate)
{
	struct dcbm_job *job = kunit_kzalloc(test, sizeof(*job), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, job);
	job->batch = batch;
	job->cpus = ferry_mtcopy_begin(batch, 0);
	KUNIT_ASSERT_NOT_NULL(test, job->cpus);
	job->spares_cpus = true;
	job->way = DCBM_BY_CHANNELS;
	dcbm_claim(job, 1);
	KUNIT_ASSERT_EQ(test, job->nr, 1);
	dcbm_expect(job);
	job->ch[0]->rate = rate * USEC_PER_MSEC;
	return job;
}

static s64 fake_count(enum dcbm_counter counter)
{
	return atomic64_read(&dcbm_counters[counter]);
}

/* The engine is not blamed: its channel does not hang, and it does not rest. */
static void fake_expect_blameless(struct kunit *test,
				  const struct dcbm_job *job)
{
	KUNIT_EXPECT_EQ(test, fake_count(DCBM_CHANNELS_HUNG), fake_hung);
	KUNIT_EXPECT_FALSE(test, dcbm_engine_rests(job->ch[0]->engine));
}

/* Without faults the channel copies all. */
static void dcbm_copies_all(struct kunit *test)
{
	struct ferry_batch *batch;
	struct dcbm_job *job;

	fake_engine(test, "ioatdma");
	batch = fake_batch(test, 2, SZ_2M);
	job = fake_job(test, batch, 0);
	dcbm_copy_job(job);
	KUNIT_EXPECT_EQ(test, batch->pairs[0].status, 0);
	KUNIT_EXPECT_EQ(test, batch->pairs[1].status, 0);
	KUNIT_EXPECT_EQ(test, batch->dma_bytes, batch->bytes);
}

/* Two transfers, each of one descriptor. */
static void fake_complete_two(struct fake_engine *engine)
{
	if (engine->nr_issued == 2)
		fake_complete(engine);
}

/* The engine has a second transfer while it copies the first one. */
static void dcbm_has_two_transfers(struct kunit *test)
{
	struct fake_engine *engine = fake_engine(test, "ae4dma");
	struct ferry_batch *batch = fake_batch(test, 2, SZ_2M);

	engine->issue = fake_complete_two;
	dcbm_copy_job(fake_job(test, batch, 1000));
	KUNIT_EXPECT_EQ(test, batch->pairs[0].status, 0);
	KUNIT_EXPECT_EQ(test, batch->pairs[1].status, 0);
}

/* A folio of 2 MiB takes one descriptor where the driver allows that. */
static void dcbm_long_descriptor(struct kunit *test)
{
	struct fake_engine *engine = fake_engine(test, "ae4dma");
	struct ferry_batch *batch = fake_batch(test, 1, SZ_2M);

	dcbm_copy_job(fake_job(test, batch, 1000));
	KUNIT_EXPECT_EQ(test, batch->dma_bytes, batch->bytes);
	KUNIT_EXPECT_EQ(test, engine->nr_preps, 1);
}

/* A few pages at the end are no transfer of their own. */
static void dcbm_leaves_no_rest(struct kunit *test)
{
	struct dcbm_channel fast = { .rate = 900 }, slow = { .rate = 100 };
	struct dcbm_job job = {
		.way = DCBM_BY_CHANNELS,
		.ch = { &fast, &slow },
		.nr = 2,
	};
	struct ferry_claims claims;

	job.batch = fake_batch(test, 2 * DCBM_MIN_TRANSFER / PAGE_SIZE - 1,
			       PAGE_SIZE);
	ferry_claims_init(&claims, job.batch);
	job.claims = &claims;
	KUNIT_EXPECT_EQ(test, dcbm_share(&job, &fast), job.batch->bytes);
	/* A small share is not enlarged: another channel may be idle. */
	KUNIT_EXPECT_EQ(test, dcbm_share(&job, &slow), DCBM_MIN_TRANSFER);
	fast.claimed = DCBM_MIN_TRANSFER;
	slow.claimed = DCBM_MIN_TRANSFER;
	KUNIT_EXPECT_EQ(test, dcbm_share(&job, &slow), 0);
}

/*
 * The first channel to end its transfer does not claim for others that are
 * about to end theirs.
 */
static void dcbm_share_counts_progress(struct kunit *test)
{
	struct dcbm_channel idle = { .rate = 100 };
	struct dcbm_channel busy = { .rate = 100, .claimed = SZ_1M };
	struct dcbm_job job = {
		.way = DCBM_BY_CHANNELS,
		.ch = { &idle, &busy },
		.nr = 2,
	};
	u64 end = SZ_1M / 100 * NSEC_PER_MSEC;
	struct ferry_claims claims;

	job.batch = fake_batch(test, SZ_512K / PAGE_SIZE, PAGE_SIZE);
	ferry_claims_init(&claims, job.batch);
	job.claims = &claims;
	busy.copies_since = NSEC_PER_MSEC;
	KUNIT_EXPECT_EQ(test, dcbm_share(&job, &idle), SZ_512K);
	job.now = busy.copies_since + end;
	KUNIT_EXPECT_GE(test, dcbm_share(&job, &idle), SZ_256K);
	KUNIT_EXPECT_LE(test, dcbm_share(&job, &idle), SZ_256K + PAGE_SIZE);
	/* Nor does a channel that ought to have ended. */
	KUNIT_EXPECT_EQ(test, dcbm_share(&job, &busy), 0);
}

/* A CPU that spends its time on channels copies nothing. */
static void dcbm_share_counts_cost(struct kunit *test)
{
	struct dcbm_channel ch = { .rate = 100 };
	struct dcbm_job job = {
		.way = DCBM_BY_BOTH,
		.cpu_rate = 100,
		.ch = { &ch },
		.nr = 1,
	};
	struct ferry_claims claims;

	job.batch = fake_batch(test, 1, SZ_1M);
	job.cpus = ferry_mtcopy_begin(job.batch, 0);
	KUNIT_ASSERT_NOT_NULL(test, job.cpus);
	ferry_claims_init(&claims, job.batch);
	job.claims = &claims;
	KUNIT_EXPECT_EQ(test, dcbm_share(&job, &ch), SZ_512K);
	ch.cost = 2 * ch.rate;
	KUNIT_EXPECT_GE(test, dcbm_share(&job, &ch), SZ_1M / 3 * 2 - PAGE_SIZE);
	KUNIT_EXPECT_LE(test, dcbm_share(&job, &ch), SZ_1M / 3 * 2 + PAGE_SIZE);
	ch.cost = ch.rate / 2;
	KUNIT_EXPECT_EQ(test, dcbm_share(&job, &ch), SZ_1M);
	ferry_mtcopy_end(job.cpus);
}

/* A slow engine's rate is learned as exactly as a fast one's. */
static void dcbm_learns_slow_rates(struct kunit *test)
{
	unsigned long rate = 0, now = 0;
	unsigned int i;

	dcbm_average(&rate, 18 * USEC_PER_MSEC, NSEC_PER_MSEC);
	dcbm_average(&now, 20 * USEC_PER_MSEC, NSEC_PER_MSEC);
	for (i = 0; i < 32; i++)
		dcbm_average(&rate, 20 * USEC_PER_MSEC, NSEC_PER_MSEC);
	KUNIT_EXPECT_GE(test, 100 * rate, 99 * now);
}

/* A share is not rounded so that a few pages are left. */
static void dcbm_claims_pages(struct kunit *test)
{
	struct ferry_batch *batch;
	s64 transfers;

	fake_engine(test, "ioatdma");
	batch = fake_batch(test, DCBM_MIN_TRANSFER / PAGE_SIZE + 1, PAGE_SIZE);
	transfers = fake_count(DCBM_TRANSFERS);
	dcbm_copy_job(fake_job(test, batch, 1000));
	KUNIT_EXPECT_EQ(test, batch->dma_bytes, batch->bytes);
	KUNIT_EXPECT_EQ(test, fake_count(DCBM_TRANSFERS), transfers + 1);
}

static bool fake_prep_late(struct fake_engine *engine)
{
	if (engine->nr_preps == 1)
		msleep(FAKE_LATE_MS);
	return true;
}

static void fake_issue_slow(struct fake_engine *engine)
{
	fake_complete_in(engine, FAKE_TIMEOUT_MS / 20 * NSEC_PER_MSEC);
}

/* A task gets no CPU between the claim and the issue: the device has time. */
static void dcbm_late_before_the_issue(struct kunit *test)
{
	struct fake_engine *engine = fake_engine(test, "ioatdma");
	struct ferry_batch *batch = fake_batch(test, 1, SZ_64K);
	struct dcbm_job *job = fake_job(test, batch, 0);

	engine->prep = fake_prep_late;
	engine->issue = fake_issue_slow;
	dcbm_copy_job(job);
	KUNIT_EXPECT_EQ(test, batch->pairs[0].status, 0);
	fake_expect_blameless(test, job);
}

/* Descriptors that the channel submits at a time for one transfer. */
static unsigned int fake_group(const struct dcbm_job *job)
{
	return job->ch[0]->quirks->depth / job->ch[0]->nr_transfers;
}

static void fake_issue_then_late(struct fake_engine *engine)
{
	fake_complete(engine);
	if (engine->nr_issues == 1)
		msleep(FAKE_LATE_MS);
}

/* Or between two groups, with nothing in flight: the CPU copies the rest. */
static void dcbm_late_between_groups(struct kunit *test)
{
	struct fake_engine *engine = fake_engine(test, "ae4dma");
	struct ferry_batch *batch = fake_batch(test, 16, PAGE_SIZE);
	struct dcbm_job *job = fake_job(test, batch, 1000);
	unsigned int group = fake_group(job);
	s64 cut = fake_count(DCBM_DEADLINE_EXCEEDED);

	engine->issue = fake_issue_then_late;
	dcbm_copy_job(job);
	KUNIT_EXPECT_EQ(test, engine->nr_done, group);
	KUNIT_EXPECT_EQ(test, batch->pairs[group].status, -EAGAIN);
	KUNIT_EXPECT_EQ(test, batch->dma_bytes, group * PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, fake_count(DCBM_DEADLINE_EXCEEDED), cut + 1);
	fake_expect_blameless(test, job);
}

/* The interrupt for both transfers comes when the first should be complete. */
static void fake_interrupt_late(struct fake_engine *engine)
{
	if (engine->nr_issues == 1)
		return;
	msleep(FAKE_LATE_MS);
	fake_complete_in(engine, NSEC_PER_MSEC / 2);
}

/* The task and the interrupt are late, and the task is the first to run. */
static void dcbm_late_interrupt(struct kunit *test)
{
	struct fake_engine *engine = fake_engine(test, "ioatdma");
	struct ferry_batch *batch = fake_batch(test, 2, SZ_2M);
	struct dcbm_job *job = fake_job(test, batch, 1000);

	engine->issue = fake_interrupt_late;
	dcbm_copy_job(job);
	KUNIT_EXPECT_EQ(test, engine->nr_issues, 2);
	KUNIT_EXPECT_EQ(test, batch->pairs[0].status, 0);
	KUNIT_EXPECT_EQ(test, batch->pairs[1].status, 0);
	fake_expect_blameless(test, job);
}

static bool fake_refuse_once(struct fake_engine *engine)
{
	if (engine->nr_preps > 1)
		return true;
	msleep(FAKE_LATE_MS);
	return false;
}

/* A driver is not blamed for one refusal, however late the task asks again. */
static void dcbm_late_after_a_refusal(struct kunit *test)
{
	struct fake_engine *engine = fake_engine(test, "ioatdma");
	struct ferry_batch *batch = fake_batch(test, 1, SZ_64K);
	struct dcbm_job *job = fake_job(test, batch, 0);

	engine->prep = fake_refuse_once;
	dcbm_copy_job(job);
	KUNIT_EXPECT_EQ(test, batch->pairs[0].status, 0);
	fake_expect_blameless(test, job);
}

static bool fake_refuse_later(struct fake_engine *engine)
{
	return engine->nr_preps < 2 || engine->nr_preps > 4;
}

/* Nor is the next descriptor offered only after the time of an earlier one. */
static void dcbm_asks_again_soon(struct kunit *test)
{
	struct fake_engine *engine = fake_engine(test, "ioatdma");
	struct ferry_batch *batch = fake_batch(test, 1, SZ_2M);
	struct dcbm_job *job = fake_job(test, batch, 0);
	u64 begin = ktime_get_ns();

	engine->prep = fake_refuse_later;
	dcbm_copy_job(job);
	KUNIT_EXPECT_LT(test, ktime_get_ns() - begin,
			FAKE_TIMEOUT_MS * NSEC_PER_MSEC);
	KUNIT_EXPECT_GT(test, engine->nr_preps, 4);
	KUNIT_EXPECT_EQ(test, batch->dma_bytes, batch->bytes);
}

static bool fake_has_room(struct fake_engine *engine)
{
	return engine->nr - engine->nr_done < engine->room;
}

static void fake_issue_one_by_one(struct fake_engine *engine)
{
	if (!hrtimer_is_queued(&engine->timer))
		fake_complete_in(engine, FAKE_GROUP_NS);
}

/* A queue that is shorter than the table says: no transfer waits for ever. */
static void dcbm_short_queue(struct kunit *test)
{
	struct fake_engine *engine = fake_engine(test, "idxd");
	struct ferry_batch *batch = fake_batch(test, FAKE_DESCS, SZ_64K);
	struct dcbm_job *job = fake_job(test, batch, 1000);

	batch->max_us = 2 * FAKE_TIMEOUT_MS * USEC_PER_MSEC;
	engine->room = fake_group(job);
	engine->prep = fake_has_room;
	engine->issue = fake_issue_one_by_one;
	dcbm_copy_job(job);
	KUNIT_EXPECT_EQ(test, batch->dma_bytes, batch->bytes);
	fake_expect_blameless(test, job);
}

/* Groups of two transfers take turns: neither is as fast as the last one. */
static void dcbm_learns_from_turns(struct kunit *test)
{
	struct fake_engine *engine = fake_engine(test, "idxd");
	struct ferry_batch *batch = fake_batch(test, 64, SZ_64K);
	struct dcbm_job *job = fake_job(test, batch, 1000);
	u64 bytes;

	engine->room = fake_group(job);
	engine->issue = fake_issue_one_by_one;
	bytes = engine->room * SZ_64K;
	dcbm_copy_job(job);
	KUNIT_EXPECT_EQ(test, batch->dma_bytes, batch->bytes);
	KUNIT_EXPECT_LT(test, job->ch[0]->rate,
			5 * bytes * NSEC_PER_MSEC / FAKE_GROUP_NS / 4);
}

static bool fake_refuse(struct fake_engine *engine)
{
	return false;
}

static void dcbm_refuser_rests(struct kunit *test)
{
	struct fake_engine *engine = fake_engine(test, "ioatdma");
	struct ferry_batch *batch = fake_batch(test, 1, SZ_64K);
	struct dcbm_job *job = fake_job(test, batch, 0);
	s64 refused = fake_count(DCBM_PREP_FAILURES);

	engine->prep = fake_refuse;
	dcbm_copy_job(job);
	KUNIT_EXPECT_EQ(test, batch->pairs[0].status, -EAGAIN);
	KUNIT_EXPECT_EQ(test, fake_count(DCBM_PREP_FAILURES), refused + 1);
	KUNIT_EXPECT_EQ(test, fake_count(DCBM_CHANNELS_HUNG), fake_hung);
	KUNIT_EXPECT_TRUE(test, dcbm_engine_rests(job->ch[0]->engine));
}

/* A descriptor that fails at once is not waited for. */
static void dcbm_failure_is_seen(struct kunit *test)
{
	struct fake_engine *engine = fake_engine(test, "ioatdma");
	struct ferry_batch *batch = fake_batch(test, 1, SZ_64K);
	struct dcbm_job *job = fake_job(test, batch, 0);
	u64 begin = ktime_get_ns();

	engine->fails = true;
	dcbm_copy_job(job);
	KUNIT_EXPECT_LT(test, ktime_get_ns() - begin,
			FAKE_TIMEOUT_MS * NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, batch->pairs[0].status, -EIO);
	KUNIT_EXPECT_TRUE(test, dcbm_engine_rests(job->ch[0]->engine));
}

static void fake_issue_nothing(struct fake_engine *engine)
{
}

/* The device has answered. */
static void fake_wait_for_recovery(struct kunit *test)
{
	unsigned int waited;

	for (waited = 0; waited < 5000 && fake_count(DCBM_HUNG_PAGES); waited++)
		fsleep(USEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, fake_count(DCBM_HUNG_PAGES), 0);
}

/* A device that has had its time hangs, and answers in the end. */
static void dcbm_silent_device_hangs(struct kunit *test)
{
	struct fake_engine *engine = fake_engine(test, "ioatdma");
	struct ferry_batch *batch = fake_batch(test, 1, SZ_64K);
	struct dcbm_job *job = fake_job(test, batch, 0);

	engine->issue = fake_issue_nothing;
	dcbm_copy_job(job);
	KUNIT_EXPECT_EQ(test, batch->pairs[0].status, -EBUSY);
	KUNIT_EXPECT_EQ(test, fake_count(DCBM_CHANNELS_HUNG), fake_hung + 1);
	KUNIT_EXPECT_TRUE(test, dcbm_engine_rests(job->ch[0]->engine));
	fake_complete(engine);
	fake_wait_for_recovery(test);
}

/*
 * Before a sleep or a shutdown dcbm does not release a hung channel, which
 * drivers may not survive, and does not wait for it.
 */
static void dcbm_hung_channel_is_kept(struct kunit *test)
{
	struct fake_engine *engine = fake_engine(test, "ioatdma");
	struct ferry_batch *batch = fake_batch(test, 1, SZ_64K);
	struct dcbm_job *job = fake_job(test, batch, 0);

	engine->issue = fake_issue_nothing;
	dcbm_copy_job(job);
	KUNIT_EXPECT_EQ(test, fake_count(DCBM_CHANNELS_HUNG), fake_hung + 1);
	scoped_guard(mutex, &dcbm_mutex)
		dcbm_release_channels(true);
	KUNIT_EXPECT_EQ(test, engine->chan.client_count, 1);
	fake_complete(engine);
	fake_wait_for_recovery(test);
	/* The work that frees the channel holds the mutex until it has. */
	scoped_guard(mutex, &dcbm_mutex)
		KUNIT_EXPECT_EQ(test, engine->chan.client_count, 0);
}

/* Nor if its device goes at a shutdown. */
static void dcbm_hung_channel_outlasts_shutdown(struct kunit *test)
{
	struct fake_engine *engine = fake_engine(test, "ioatdma");
	struct ferry_batch *batch = fake_batch(test, 1, SZ_64K);
	int clients;

	engine->issue = fake_issue_nothing;
	dcbm_copy_job(fake_job(test, batch, 0));
	scoped_guard(mutex, &dcbm_mutex) {
		dcbm_release_channels(true);
		/* DCBM_SHUTDOWN is one of them. */
		dcbm_suspend_state = ~0;
	}
	device_release_driver(engine->dma.dev);
	clients = engine->chan.client_count;
	scoped_guard(mutex, &dcbm_mutex)
		dcbm_suspend_state = 0;
	/* A callback does not survive the release. */
	KUNIT_ASSERT_EQ(test, clients, 1);
	fake_complete(engine);
	fake_wait_for_recovery(test);
	/* As above. */
	scoped_guard(mutex, &dcbm_mutex)
		KUNIT_EXPECT_EQ(test, engine->chan.client_count, 0);
}

/* dcbm does not release a hung channel if the driver would wait. */
static void dcbm_release_does_not_wait(struct kunit *test)
{
	struct fake_engine *engine = fake_engine(test, "idxd");
	struct ferry_batch *batch = fake_batch(test, 1, SZ_64K);

	engine->issue = fake_issue_nothing;
	dcbm_copy_job(fake_job(test, batch, 0));
	device_release_driver(engine->dma.dev);
	KUNIT_ASSERT_EQ(test, engine->chan.client_count, 1);
	/* Otherwise both would outlast the engine. */
	dma_release_channel(&engine->chan);
	put_device(engine->dma.dev);
}

/* Both transfers are complete before the task can look at the first one. */
static void fake_issue_both(struct fake_engine *engine)
{
	if (engine->nr_issues == 1)
		return;
	msleep(FAKE_TIMEOUT_MS / 5);
	fake_complete(engine);
}

/* The second transfer did not take only the time between two looks. */
static void dcbm_learns_no_interval_of_looks(struct kunit *test)
{
	struct fake_engine *engine = fake_engine(test, "ioatdma");
	struct ferry_batch *batch = fake_batch(test, 2, SZ_2M);
	struct dcbm_job *job = fake_job(test, batch, 1000);

	engine->issue = fake_issue_both;
	dcbm_copy_job(job);
	KUNIT_EXPECT_EQ(test, engine->nr_issues, 2);
	KUNIT_EXPECT_EQ(test, batch->dma_bytes, batch->bytes);
	KUNIT_EXPECT_LE(test, job->ch[0]->rate,
			batch->bytes / (FAKE_TIMEOUT_MS / 5));
}

/* A batch that tries an engine after its rest is not left to the CPUs. */
static void dcbm_trial_is_not_wasted(struct kunit *test)
{
	struct ferry_batch *batch;
	struct dcbm_job *job;

	fake_engine(test, "ioatdma");
	batch = fake_batch(test, 1, SZ_64K);
	job = fake_job(test, batch, 0);
	/* As long as nothing is known of the CPUs they are measured first. */
	dcbm_choose(job);
	KUNIT_EXPECT_EQ(test, job->way, DCBM_BY_CPUS);
	KUNIT_EXPECT_TRUE(test, job->measured);
	KUNIT_EXPECT_NOT_NULL(test, job->choice);
	dcbm_engine_failed(job->ch[0]->engine, "a test");
	dcbm_choose(job);
	KUNIT_EXPECT_NE(test, job->way, DCBM_BY_CPUS);
	KUNIT_EXPECT_NULL(test, job->choice);
	dcbm_copy_job(job);
	KUNIT_EXPECT_EQ(test, batch->dma_bytes, batch->bytes);
}

static int fake_map(struct dcbm_transfer *transfer)
{
	return -EIO;
}

/* An engine that memory cannot be mapped for takes no more of the batch. */
static void dcbm_stops_if_not_mapped(struct kunit *test)
{
	struct ferry_batch *batch;
	struct dcbm_job *job;
	s64 failed = fake_count(DCBM_MAP_FAILURES);

	fake_engine(test, "ioatdma");
	batch = fake_batch(test, 2, SZ_2M);
	job = fake_job(test, batch, 0);
	/* So fast that the CPUs can copy the batch in its time */
	job->cpu_rate = batch->bytes * 2 * USEC_PER_MSEC / batch->max_us;
	dcbm_choose(job);
	KUNIT_EXPECT_NOT_NULL(test, job->choice);
	kunit_activate_static_stub(test, dcbm_map, fake_map);
	dcbm_copy_job(job);
	KUNIT_EXPECT_EQ(test, batch->pairs[0].status, 0);
	KUNIT_EXPECT_EQ(test, batch->pairs[1].status, -EIO);
	KUNIT_EXPECT_EQ(test, fake_count(DCBM_MAP_FAILURES), failed + 1);
	/* Its rest may have ended while the CPU copied. */
	KUNIT_EXPECT_TRUE(test, dcbm_engine_is_tried(job->ch[0]->engine));
	KUNIT_EXPECT_NULL(test, job->choice);
}

static void fake_issue_error(struct fake_engine *engine)
{
	engine->result = DMA_TRANS_WRITE_FAILED;
	fake_complete(engine);
}

/* Nothing is learned from the time of a batch whose folios are not copied. */
static void dcbm_learns_from_whole_batches(struct kunit *test)
{
	struct fake_engine *engine = fake_engine(test, "ioatdma");
	struct ferry_batch *batch = fake_batch(test, 1, SZ_64K);
	struct dcbm_job *job = fake_job(test, batch, 0);

	engine->issue = fake_issue_error;
	dcbm_choose(job);
	KUNIT_EXPECT_NOT_NULL(test, job->choice);
	dcbm_copy_job(job);
	KUNIT_EXPECT_EQ(test, batch->pairs[0].status, -EIO);
	KUNIT_EXPECT_TRUE(test, dcbm_engine_rests(job->ch[0]->engine));
	KUNIT_EXPECT_NULL(test, job->choice);
}

static void fake_issue_slower(struct fake_engine *engine)
{
	fake_complete_in(engine, 5 * NSEC_PER_MSEC);
}

/* The job's batch is a trial of @way, and takes @ns. */
static void fake_trial(struct kunit *test, struct dcbm_job *job,
		       enum dcbm_way way, u64 ns)
{
	dcbm_choose(job);
	KUNIT_EXPECT_EQ(test, job->way, way);
	KUNIT_EXPECT_TRUE(test, job->measured);
	dcbm_learn_batch(job, ns);
}

/* The comparison is over: the job's batch is copied in @way. */
static void fake_expect_way(struct kunit *test, struct dcbm_job *job,
			    enum dcbm_way way)
{
	dcbm_choose(job);
	KUNIT_EXPECT_EQ(test, job->way, way);
	KUNIT_EXPECT_FALSE(test, job->measured);
}

/*
 * A job to compare, with nothing known of others like it. Its channel is
 * expected to be faster than the CPU.
 */
static struct dcbm_job *fake_comparison(struct kunit *test)
{
	struct dcbm_job *job;

	job = fake_job(test, fake_batch(test, 16, PAGE_SIZE), 1000);
	job->cpu_rate = 500 * USEC_PER_MSEC;
	dcbm_choices_forget();
	return job;
}

static void fake_job_end(struct dcbm_job *job)
{
	dcbm_give_back(job);
	ferry_mtcopy_end(job->cpus);
}

/* The fastest way is kept, but for a disturbed trial and until it is slower. */
static void dcbm_keeps_the_fastest(struct kunit *test)
{
	struct dcbm_job *job;
	unsigned int i;

	fake_engine(test, "ae4dma");
	job = fake_comparison(test);
	job->spares_cpus = false;
	for (i = 1; i <= 2; i++) {
		fake_trial(test, job, DCBM_BY_CPUS, NSEC_PER_MSEC);
		/* The first one is disturbed. */
		fake_trial(test, job, DCBM_BY_CHANNELS,
			   NSEC_PER_MSEC / (i * i));
		fake_trial(test, job, DCBM_BY_BOTH, NSEC_PER_MSEC / 3);
	}
	for (i = 0; i < 2; i++) {
		fake_expect_way(test, job, DCBM_BY_CHANNELS);
		dcbm_learn_batch(job, NSEC_PER_MSEC);
	}
	fake_expect_way(test, job, DCBM_BY_BOTH);
	fake_job_end(job);
}

/* dcbm does not even try the CPUs beside channels that are faster. */
static void dcbm_spares_the_cpus(struct kunit *test)
{
	struct dcbm_job *job;
	unsigned int i;

	fake_engine(test, "ae4dma");
	job = fake_comparison(test);
	for (i = 0; i < 2; i++) {
		fake_trial(test, job, DCBM_BY_CPUS, NSEC_PER_MSEC);
		fake_trial(test, job, DCBM_BY_CHANNELS, NSEC_PER_MSEC / 2);
	}
	fake_expect_way(test, job, DCBM_BY_CHANNELS);
	for (i = 0; i < 8; i++)
		dcbm_learn_batch(job, 2 * NSEC_PER_MSEC);
	/* They are slower now. */
	for (i = 0; i < 2; i++)
		fake_trial(test, job, DCBM_BY_BOTH, NSEC_PER_MSEC / 2);
	fake_expect_way(test, job, DCBM_BY_BOTH);
	fake_job_end(job);
}

/* Channels that are slower than the CPUs get no more of a comparison. */
static void dcbm_loser_is_cut(struct kunit *test)
{
	struct fake_engine *engine = fake_engine(test, "ae4dma");
	struct dcbm_job *job = fake_comparison(test);

	engine->issue = fake_issue_slower;
	fake_trial(test, job, DCBM_BY_CPUS, NSEC_PER_MSEC);
	dcbm_choose(job);
	KUNIT_EXPECT_EQ(test, job->way, DCBM_BY_CHANNELS);
	engine->nr_preps = 0;
	dcbm_copy_job(job);
	KUNIT_EXPECT_EQ(test, engine->nr_preps, fake_group(job));
	KUNIT_EXPECT_EQ(test, job->batch->pairs[15].status, -EAGAIN);
	fake_expect_blameless(test, job);
}

/* A comparison that was lost comes again after some time and some batches. */
static void dcbm_loser_waits(struct kunit *test)
{
	struct dcbm_job *job;
	unsigned int i;

	fake_engine(test, "ae4dma");
	job = fake_comparison(test);
	for (i = 0; i < 2; i++) {
		fake_trial(test, job, DCBM_BY_CPUS, NSEC_PER_MSEC);
		fake_trial(test, job, DCBM_BY_CHANNELS, 2 * NSEC_PER_MSEC);
	}
	for (i = 0; i < 2; i++)
		fake_trial(test, job, DCBM_BY_BOTH, 2 * NSEC_PER_MSEC);
	msleep(DCBM_AGE / HZ * MSEC_PER_SEC + 100);
	for (i = 0; i < 4; i++)
		fake_expect_way(test, job, DCBM_BY_CPUS);
	fake_trial(test, job, DCBM_BY_CPUS, NSEC_PER_MSEC);
	fake_job_end(job);
}

/* Batches rarer than the age of rates come to a verdict, and keep it. */
static void dcbm_compares_rare_batches(struct kunit *test)
{
	struct ferry_batch *batch;
	struct dcbm_job *job;

	fake_engine(test, "ae4dma");
	batch = fake_batch(test, 16, PAGE_SIZE);
	job = fake_job(test, batch, 0);
	dcbm_choices_forget();
	fake_trial(test, job, DCBM_BY_CPUS, NSEC_PER_MSEC);
	dcbm_choose(job);
	KUNIT_EXPECT_EQ(test, job->way, DCBM_BY_BOTH);
	/* Its first transfer is no comparison, if another one comes soon. */
	KUNIT_EXPECT_NULL(test, job->choice);
	msleep(DCBM_AGE / HZ * MSEC_PER_SEC + 100);
	fake_trial(test, job, DCBM_BY_BOTH, NSEC_PER_MSEC / 2);
	fake_trial(test, job, DCBM_BY_CPUS, NSEC_PER_MSEC);
	msleep(DCBM_AGE / HZ * MSEC_PER_SEC + 100);
	fake_trial(test, job, DCBM_BY_BOTH, NSEC_PER_MSEC / 2);
	/* It has lasted for longer than its result is good for. */
	fake_expect_way(test, job, DCBM_BY_BOTH);
	fake_job_end(job);
}

static void fake_zero(struct ferry_batch *batch)
{
	unsigned int i;

	for (i = 0; i < batch->nr; i++) {
		folio_zero_range(batch->pairs[i].src, 0,
				 folio_size(batch->pairs[i].src));
		folio_zero_range(batch->pairs[i].dst, 0,
				 folio_size(batch->pairs[i].dst));
	}
}

/* Memory that was equal before does not prove that the device has copied. */
static void dcbm_verifies_no_chance(struct kunit *test)
{
	struct ferry_batch *batch;
	s64 failures, copied;

	/* The driver is not trusted, and the engine copies nothing. */
	fake_engine(test, "sf-pdma");
	batch = fake_batch(test, 2, SZ_64K);
	fake_zero(batch);
	failures = fake_count(DCBM_VERIFY_FAILURES);
	copied = fake_count(DCBM_COPIED_BYTES);
	dcbm_copy_job(fake_job(test, batch, 0));
	KUNIT_EXPECT_LT(test, batch->pairs[0].status, 0);
	KUNIT_EXPECT_LT(test, batch->pairs[1].status, 0);
	KUNIT_EXPECT_GT(test, fake_count(DCBM_VERIFY_FAILURES), failures);
	KUNIT_EXPECT_EQ(test, fake_count(DCBM_COPIED_BYTES), copied);
	KUNIT_EXPECT_EQ(test, batch->dma_bytes, 0);
}

static bool fake_fail_second(struct fake_engine *engine)
{
	engine->result = engine->nr == 1 ? DMA_TRANS_WRITE_FAILED :
					   DMA_TRANS_NOERROR;
	return true;
}

/* One bad descriptor leaves the bytes of the others in the counter. */
static void dcbm_counts_the_good(struct kunit *test)
{
	struct fake_engine *engine = fake_engine(test, "ptdma");
	struct ferry_batch *batch = fake_batch(test, 2, SZ_64K);
	s64 copied = fake_count(DCBM_COPIED_BYTES);
	size_t good = 0;
	unsigned int i;

	engine->prep = fake_fail_second;
	dcbm_copy_job(fake_job(test, batch, 1000));
	for (i = 0; i < batch->nr; i++)
		if (!batch->pairs[i].status)
			good += folio_size(batch->pairs[i].src);
	KUNIT_EXPECT_EQ(test, good, SZ_64K);
	KUNIT_EXPECT_EQ(test, batch->dma_bytes, good);
	KUNIT_EXPECT_EQ(test, fake_count(DCBM_COPIED_BYTES) - copied, good);
}

static int dcbm_suite_init(struct kunit *test)
{
	fake_saved = dcbm_tuning;
	dcbm_tuning.timeout_ms = FAKE_TIMEOUT_MS;
	fake_hung = fake_count(DCBM_CHANNELS_HUNG);
	return 0;
}

static void dcbm_suite_exit(struct kunit *test)
{
	struct fake_engine *engine = test->priv;

	if (engine) {
		hrtimer_cancel(&engine->timer);
		/* The channels of an engine that goes are released. */
		dma_async_device_unregister(&engine->dma);
		dcbm_release_all();
		dcbm_set_devices("all");
	}
	dcbm_tuning = fake_saved;
}

static struct kunit_case dcbm_cases[] = {
	KUNIT_CASE(dcbm_copies_all),
	KUNIT_CASE(dcbm_has_two_transfers),
	KUNIT_CASE(dcbm_long_descriptor),
	KUNIT_CASE(dcbm_leaves_no_rest),
	KUNIT_CASE(dcbm_share_counts_progress),
	KUNIT_CASE(dcbm_share_counts_cost),
	KUNIT_CASE(dcbm_learns_slow_rates),
	KUNIT_CASE(dcbm_claims_pages),
	KUNIT_CASE(dcbm_late_before_the_issue),
	KUNIT_CASE(dcbm_late_between_groups),
	KUNIT_CASE(dcbm_late_interrupt),
	KUNIT_CASE(dcbm_late_after_a_refusal),
	KUNIT_CASE(dcbm_asks_again_soon),
	KUNIT_CASE(dcbm_short_queue),
	KUNIT_CASE(dcbm_learns_from_turns),
	KUNIT_CASE(dcbm_refuser_rests),
	KUNIT_CASE(dcbm_failure_is_seen),
	KUNIT_CASE(dcbm_silent_device_hangs),
	KUNIT_CASE(dcbm_hung_channel_is_kept),
	KUNIT_CASE(dcbm_hung_channel_outlasts_shutdown),
	KUNIT_CASE(dcbm_release_does_not_wait),
	KUNIT_CASE(dcbm_learns_no_interval_of_looks),
	KUNIT_CASE(dcbm_trial_is_not_wasted),
	KUNIT_CASE(dcbm_stops_if_not_mapped),
	KUNIT_CASE(dcbm_learns_from_whole_batches),
	KUNIT_CASE(dcbm_keeps_the_fastest),
	KUNIT_CASE(dcbm_spares_the_cpus),
	KUNIT_CASE(dcbm_loser_is_cut),
	KUNIT_CASE_SLOW(dcbm_loser_waits),
	KUNIT_CASE_SLOW(dcbm_compares_rare_batches),
	KUNIT_CASE(dcbm_verifies_no_chance),
	KUNIT_CASE(dcbm_counts_the_good),
	{}
};

static struct kunit_suite dcbm_suite = {
	.name = "ferry_dcbm",
	.init = dcbm_suite_init,
	.exit = dcbm_suite_exit,
	.test_cases = dcbm_cases,
};

kunit_test_suite(dcbm_suite);
