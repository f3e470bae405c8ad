// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: When a DMA engine pays
 *
 * Setting up a DMA costs the same for 4 KiB as for 1 MiB. When dcbm is selected, and when its
 * channels or its verification change, each engine copies three small batches of its own, by
 * the way all batches go, mapping, sleeping and comparing included, and the CPU copies one. The
 * line through the results,
 *
 *	base + folios * folio_ns + bytes * byte_ns
 *
 * tells of every later batch whether it pays; if not it is refused, and the CPU copies it as if
 * dcbm were not there. force_offload in debugfs overrides that. An engine that failed while
 * it was measured counts as slower than anything; of one that could not be measured, for want of
 * a channel or of memory, the figures before stay.
 *
 * Each engine is measured with one channel and with as many as a batch may have: to start and to
 * await many takes its time, which a small batch does not pay back, and not all engines copy at
 * the same time what they are given at the same time.
 *
 * Lock order: dcbm_mutex, held by the caller.
 */

#include <linux/cleanup.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "internal.h"

/* Runs of each batch; the fastest counts, as what disturbs only adds. */
#define DCBM_RUNS	6
/* 512 KiB: large enough to be cut for several channels, small enough to be had. */
#define DCBM_LARGE	(19 - PAGE_SHIFT)

/**
 * struct dcbm_cost - what a batch costs
 * @known:	it was measured
 * @base_ns:	a batch
 * @folio_ns:	each folio, in 1/1024 ns
 * @byte_ns:	each byte, in 1/1024 ns
 */
struct dcbm_cost {
	bool known;
	u64 base_ns;
	u64 folio_ns;
	u64 byte_ns;
};

/* With one channel, and with all. */
enum { DCBM_ALONE, DCBM_TOGETHER, DCBM_NR_WAYS };

static struct dcbm_cost dcbm_costs[DCBM_NR_ENGINES][DCBM_NR_WAYS];
/* By the CPU, each byte, in 1/1024 ns. */
static u64 dcbm_cpu_byte_ns;

static void dcbm_sample_free(struct ferry_batch *batch)
{
	unsigned int i;

	for (i = 0; i < batch->nr; i++) {
		folio_put(batch->pairs[i].src);
		folio_put(batch->pairs[i].dst);
	}
	batch->nr = 0;
}

static bool dcbm_sample_add(struct ferry_batch *batch, unsigned int order, int nid)
{
	gfp_t gfp = GFP_KERNEL | __GFP_NOWARN | __GFP_NORETRY | __GFP_COMP | __GFP_ZERO;
	struct folio *src = __folio_alloc_node(gfp, order, numa_mem_id());
	struct folio *dst = __folio_alloc_node(gfp, order, nid);

	if (!src || !dst) {
		if (src)
			folio_put(src);
		if (dst)
			folio_put(dst);
		return false;
	}
	batch->pairs[batch->nr++] = (struct ferry_pair) {
		.src = src, .dst = dst, .offset = batch->bytes,
	};
	batch->bytes += folio_size(src);
	return true;
}

/*
 * Take every other one of twice as many: neighbours from a fresh free list would merge into one
 * descriptor, as those of a process seldom do.
 */
static bool dcbm_sample_make(struct ferry_batch *batch, unsigned int nr, unsigned int order,
			     int nid)
{
	unsigned int i;

	batch->nr = 0;
	batch->bytes = 0;
	while (batch->nr < 2 * nr)
		if (!dcbm_sample_add(batch, order, nid))
			return false;
	for (i = 0; i < nr; i++) {
		folio_put(batch->pairs[2 * i + 1].src);
		folio_put(batch->pairs[2 * i + 1].dst);
		batch->pairs[i] = batch->pairs[2 * i];
		batch->pairs[i].offset /= 2;
	}
	batch->nr = nr;
	batch->bytes /= 2;
	return true;
}

/* Claim for a measurement: batches that are under way are waited for, but not for ever. */
static bool dcbm_claim_some(struct dcbm_run *run, unsigned int wanted,
			    const struct dcbm_engine *engine)
{
	unsigned long end = jiffies + HZ;

	/* Not by waiting on dcbm_wait, which claiming may wake: that would spin. */
	while (dcbm_claim(run, wanted, engine), !run->nr && time_before(jiffies, end))
		usleep_range(1000, 2000);
	return run->nr;
}

/* Nanoseconds for a batch by an engine's channels. -EBUSY if it had none, -EIO if they failed. */
static int dcbm_time_engine(struct ferry_batch *batch, const struct dcbm_engine *engine,
			    unsigned int channels, u64 *best)
{
	struct dcbm_run run;
	unsigned int i, k;
	u64 start;

	*best = U64_MAX;
	for (i = 0; i < DCBM_RUNS; i++) {
		run = (struct dcbm_run) { .batch = batch };
		if (!dcbm_claim_some(&run, channels, engine))
			return -EBUSY;
		start = ktime_get_ns();
		dcbm_copy_with(&run);
		*best = min(*best, ktime_get_ns() - start);
		for (k = 0; k < batch->nr; k++)
			if (batch->pairs[k].status)
				return -EIO;
	}
	return 0;
}

static u64 dcbm_time_cpu(struct ferry_batch *batch)
{
	u64 best = U64_MAX, start;
	unsigned int i, k;

	for (i = 0; i < DCBM_RUNS; i++) {
		start = ktime_get_ns();
		for (k = 0; k < batch->nr; k++)
			folio_mc_copy(batch->pairs[k].dst, batch->pairs[k].src);
		best = min(best, ktime_get_ns() - start);
	}
	return best;
}

static u64 dcbm_rate(u64 more, u64 less, u64 nr)
{
	return more > less ? div64_u64((more - less) << 10, nr) : 0;
}

/*
 * How long each of the three batches takes. -ENOMEM if one could not be made, -EBUSY or -EIO if
 * it could not be copied.
 */
static int dcbm_time(struct ferry_batch *batch, const struct dcbm_engine *engine, int nid,
		     unsigned int channels, u64 ns[3])
{
	static const struct { unsigned int nr, order; } samples[] = {
		{ SZ_1M / PAGE_SIZE, 0 }, { 2, DCBM_LARGE }, { 8, DCBM_LARGE },
	};
	unsigned int i;
	int err = 0;

	for (i = 0; !err && i < ARRAY_SIZE(samples); i++) {
		bool made = dcbm_sample_make(batch, samples[i].nr, samples[i].order, nid);

		err = made ? dcbm_time_engine(batch, engine, channels, &ns[i]) : -ENOMEM;
		/* The last batch is large enough to tell the CPU's rate by. */
		if (made && i == ARRAY_SIZE(samples) - 1)
			dcbm_cpu_byte_ns = dcbm_rate(dcbm_time_cpu(batch), 0, batch->bytes);
		dcbm_sample_free(batch);
	}
	return err;
}

/* Old figures are better than none, while new ones are made and where none can be. */
static void dcbm_measure(struct dcbm_cost *figures, struct ferry_batch *batch,
			 const struct dcbm_engine *engine, int nid, unsigned int channels)
{
	struct dcbm_cost cost = {};
	u64 ns[3];
	int err = dcbm_time(batch, engine, nid, channels, ns);

	if (err && err != -EIO)
		return;
	if (!err) {
		cost.known = true;
		cost.folio_ns = dcbm_rate(ns[0], ns[1], SZ_1M / PAGE_SIZE - 2);
		cost.byte_ns = dcbm_rate(ns[2], ns[1], 3 * SZ_1M);
		cost.base_ns = ns[1] - min(ns[1], cost.byte_ns * SZ_1M >> 10);
	}
	*figures = cost;
}

static void dcbm_measure_ways(struct ferry_batch *batch, const struct dcbm_engine *engine, int nid)
{
	struct dcbm_cost *ways = dcbm_costs[dcbm_engine_number(engine)];
	unsigned int channels = READ_ONCE(dcbm_tuning.channels);

	dcbm_measure(&ways[DCBM_ALONE], batch, engine, nid, 1);
	dcbm_measure(&ways[DCBM_TOGETHER], batch, engine, nid, channels);
}

/**
 * dcbm_calibrate() - measure every engine whose channels are held, unless all is offloaded
 *
 * Context: process context, dcbm_mutex held. Allocates; takes some milliseconds.
 */
void dcbm_calibrate(void)
{
	struct ferry_batch *batch __free(kvfree) = NULL;
	bool measured[DCBM_NR_ENGINES] = {};
	unsigned int slot;

	lockdep_assert_held(&dcbm_mutex);
	if (READ_ONCE(dcbm_tuning.force_offload))
		return;
	batch = kvzalloc_obj(*batch);
	for (slot = 0; batch && slot < DCBM_MAX_CHANNELS; slot++) {
		struct dcbm_channel *ch = dcbm_slot(slot);
		int nid = ch && ch->nid != NUMA_NO_NODE ? ch->nid : numa_mem_id();

		if (!ch || measured[dcbm_engine_number(ch->engine)])
			continue;
		dcbm_measure_ways(batch, ch->engine, nid);
		measured[dcbm_engine_number(ch->engine)] = true;
	}
}

/* What a batch would take, U64_MAX if that is not known. */
static u64 dcbm_estimate(const struct dcbm_cost *cost, const struct ferry_batch *batch)
{
	if (!cost->known)
		return U64_MAX;
	return cost->base_ns + ((batch->nr * cost->folio_ns + batch->bytes * cost->byte_ns) >> 10);
}

static u64 dcbm_cpu_estimate(const struct ferry_batch *batch)
{
	return batch->bytes * READ_ONCE(dcbm_cpu_byte_ns) >> 10;
}

/**
 * dcbm_may_pay() - is any engine faster than the CPU, if it has channels free?
 * @batch: the batch
 *
 * What refuses most batches is so found out before channels are put in order and claimed, which
 * costs more.
 *
 * Context: any.
 * Return: false if dcbm_choose() would say 0 whatever the channels.
 */
bool dcbm_may_pay(const struct ferry_batch *batch)
{
	u64 cpu = dcbm_cpu_estimate(batch);
	unsigned int i;

	for (i = 0; i < DCBM_NR_ENGINES; i++)
		if (dcbm_estimate(&dcbm_costs[i][DCBM_ALONE], batch) < cpu ||
		    dcbm_estimate(&dcbm_costs[i][DCBM_TOGETHER], batch) < cpu)
			return true;
	return false;
}

/* The slowest of a run's engines decides. */
static u64 dcbm_estimate_run(const struct dcbm_run *run, unsigned int nr, unsigned int way)
{
	u64 most = 0;
	unsigned int i;

	for (i = 0; i < nr; i++) {
		unsigned int engine = dcbm_engine_number(run->ch[i]->engine);

		most = max(most, dcbm_estimate(&dcbm_costs[engine][way], run->batch));
	}
	return most;
}

/**
 * dcbm_choose() - how many of a run's channels should copy its batch?
 * @run: the run, with its channels
 *
 * Context: any.
 * Return: all of them, one, or 0 if the CPU is faster.
 */
unsigned int dcbm_choose(const struct dcbm_run *run)
{
	u64 cpu = dcbm_cpu_estimate(run->batch);
	u64 alone = dcbm_estimate_run(run, 1, DCBM_ALONE);
	u64 together = dcbm_estimate_run(run, run->nr, DCBM_TOGETHER);

	if (min(alone, together) >= cpu)
		return 0;
	return together < alone ? run->nr : 1;
}

static void dcbm_show_cost(struct seq_file *m, const char *name, const char *way,
			   const struct dcbm_cost *cost)
{
	if (cost->known)
		seq_printf(m, "%s, %s: %llu ns a batch, %llu/1024 ns a folio, %llu/1024 ns a byte\n",
			   name, way, cost->base_ns, cost->folio_ns, cost->byte_ns);
}

/** dcbm_show_costs() - the figures, for debugfs; dcbm_mutex held */
void dcbm_show_costs(struct seq_file *m)
{
	unsigned int i;

	seq_printf(m, "cpu: %llu/1024 ns a byte\n", dcbm_cpu_byte_ns);
	for (i = 0; i < DCBM_NR_ENGINES; i++) {
		const char *name = dcbm_engine_nth(i)->driver ?: "other";

		dcbm_show_cost(m, name, "one channel", &dcbm_costs[i][DCBM_ALONE]);
		dcbm_show_cost(m, name, "all channels", &dcbm_costs[i][DCBM_TOGETHER]);
	}
}
