// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Offload cost model
 *
 * The setup of a DMA takes as long for 4 KiB as for 1 MiB. When dcbm is
 * selected, and when its channels or its verification change, each engine
 * copies three small batches of its own in the same way as all batches,
 * mapping, sleeping and verification included, and the CPU copies one. A linear
 * model through the results,
 *
 *	base + folios * folio_ns + bytes * byte_ns
 *
 * predicts for every later batch whether an engine is faster. If not, dcbm
 * rejects the batch and the CPU copies it as without dcbm. force_offload in
 * debugfs overrides that. An engine that failed while it was measured counts as
 * slower than the CPU. If an engine could not be measured, because channels
 * were busy or memory was short, its previous figures stay.
 *
 * Each engine is measured with one channel and with as many as a batch may
 * have: it takes time to start many channels and to wait for them, which a
 * small batch does not win back, and not all engines copy in parallel what
 * their channels get at the same time.
 *
 * Locking: dcbm_mutex, held by the caller, serialises calibrations. Batches
 * read the figures without a lock: a mixed set costs one bad decision.
 */

#include <linux/cleanup.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "internal.h"

/* Runs of each batch; the fastest counts, because noise only adds time. */
#define DCBM_RUNS	6
/* 512 KiB: enough for several channels, and still likely to be available. */
#define DCBM_LARGE_ORDER	(19 - PAGE_SHIFT)

/**
 * struct dcbm_cost - coefficients of the cost model
 * @known:	they were measured
 * @base_ns:	time of a batch, in ns
 * @folio_ns:	time of each folio, in 1/1024 ns
 * @byte_ns:	time of each byte, in 1/1024 ns
 */
struct dcbm_cost {
	bool known;
	u64 base_ns;
	u64 folio_ns;
	u64 byte_ns;
};

/* With one channel, and with all. */
enum { DCBM_ONE, DCBM_ALL, DCBM_NR_MODES };

static struct dcbm_cost dcbm_costs[DCBM_NR_QUIRKS][DCBM_NR_MODES];
/* Time of the CPU for each byte, in 1/1024 ns. */
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

static bool dcbm_sample_add(struct ferry_batch *batch, unsigned int order,
			    int nid)
{
	gfp_t gfp = GFP_KERNEL | __GFP_NOWARN | __GFP_NORETRY | __GFP_COMP |
		    __GFP_ZERO;
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
 * Allocate twice as many folios and use every second one: neighbours from a new
 * free list would merge into one descriptor, which those of a process seldom
 * do.
 */
static bool dcbm_sample_make(struct ferry_batch *batch, unsigned int nr,
			     unsigned int order, int nid)
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

/* Claim for a measurement: wait up to a second for batches in flight. */
static bool dcbm_claim_retry(struct dcbm_job *job, unsigned int wanted,
			     const struct dcbm_quirks *quirks)
{
	unsigned long end = jiffies + HZ;

	/* A wait on dcbm_wait would spin, because a failed claim wakes it. */
	while (dcbm_claim(job, wanted, quirks),
	       !job->nr && time_before(jiffies, end))
		usleep_range(1000, 2000);
	return job->nr;
}

/*
 * Nanoseconds for a batch by an engine's channels. -EBUSY if it had no channel
 * free, -EIO if a copy failed.
 */
static int dcbm_time_engine(struct ferry_batch *batch,
			    const struct dcbm_quirks *quirks,
			    unsigned int channels, u64 *best)
{
	struct dcbm_job job;
	unsigned int i, k;
	u64 start;

	*best = U64_MAX;
	for (i = 0; i < DCBM_RUNS; i++) {
		job = (struct dcbm_job){ .batch = batch };
		if (!dcbm_claim_retry(&job, channels, quirks))
			return -EBUSY;
		start = ktime_get_ns();
		dcbm_copy_job(&job);
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
 * Time each of the three batches. -ENOMEM if one could not be allocated, -EBUSY
 * or -EIO if it could not be copied.
 */
static int dcbm_time(struct ferry_batch *batch,
		     const struct dcbm_quirks *quirks, int nid,
		     unsigned int channels, u64 ns[3])
{
	static const struct { unsigned int nr, order; } samples[] = {
		{ SZ_1M / PAGE_SIZE, 0 },
		{ 2, DCBM_LARGE_ORDER },
		{ 8, DCBM_LARGE_ORDER },
	};
	unsigned int i;
	int err = 0;

	for (i = 0; !err && i < ARRAY_SIZE(samples); i++) {
		bool made = dcbm_sample_make(batch, samples[i].nr,
					     samples[i].order, nid);

		err = -ENOMEM;
		if (made)
			err = dcbm_time_engine(batch, quirks, channels, &ns[i]);
		/* The last batch is large enough for the CPU's rate. */
		if (made && i == ARRAY_SIZE(samples) - 1)
			dcbm_cpu_byte_ns = dcbm_rate(dcbm_time_cpu(batch), 0,
						     batch->bytes);
		dcbm_sample_free(batch);
	}
	return err;
}

/* The previous figures stay while a measurement runs, and if it cannot run. */
static void dcbm_measure(struct dcbm_cost *figures, struct ferry_batch *batch,
			 const struct dcbm_quirks *quirks, int nid,
			 unsigned int channels)
{
	struct dcbm_cost cost = {};
	u64 ns[3];
	int err = dcbm_time(batch, quirks, nid, channels, ns);

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

/**
 * dcbm_calibrate() - measure every engine whose channels are held
 *
 * Does nothing if force_offload makes the figures irrelevant.
 *
 * Context: process context, dcbm_mutex held. Allocates; takes milliseconds.
 */
void dcbm_calibrate(void)
{
	struct ferry_batch *batch __free(kvfree) = NULL;
	bool measured[DCBM_NR_QUIRKS] = {};
	unsigned int slot;

	lockdep_assert_held(&dcbm_mutex);
	if (READ_ONCE(dcbm_tuning.force_offload))
		return;
	batch = kvzalloc_obj(*batch);
	for (slot = 0; batch && slot < DCBM_MAX_CHANNELS; slot++) {
		struct dcbm_channel *ch = dcbm_slot(slot);
		unsigned int row;
		int nid;

		if (!ch)
			continue;
		row = dcbm_quirks_index(ch->quirks);
		if (measured[row])
			continue;
		nid = ch->nid != NUMA_NO_NODE ? ch->nid : numa_mem_id();
		dcbm_measure(&dcbm_costs[row][DCBM_ONE], batch, ch->quirks,
			     nid, 1);
		dcbm_measure(&dcbm_costs[row][DCBM_ALL], batch, ch->quirks,
			     nid, READ_ONCE(dcbm_tuning.channels));
		measured[row] = true;
	}
}

/* Predicted nanoseconds of a batch, U64_MAX if that is not known. */
static u64 dcbm_estimate(const struct dcbm_cost *cost,
			 const struct ferry_batch *batch)
{
	if (!cost->known)
		return U64_MAX;
	return cost->base_ns + ((batch->nr * cost->folio_ns +
				 batch->bytes * cost->byte_ns) >> 10);
}

static u64 dcbm_cpu_estimate(const struct ferry_batch *batch)
{
	return batch->bytes * READ_ONCE(dcbm_cpu_byte_ns) >> 10;
}

/**
 * dcbm_worth_offloading() - is any engine faster than the CPU for a batch?
 * @batch: the batch
 *
 * Rejects most batches before channels are sorted and claimed, which takes
 * longer.
 *
 * Context: any.
 * Return: false if dcbm_pick_channels() would return 0 for any channels.
 */
bool dcbm_worth_offloading(const struct ferry_batch *batch)
{
	u64 cpu = dcbm_cpu_estimate(batch);
	unsigned int i;

	for (i = 0; i < DCBM_NR_QUIRKS; i++)
		if (dcbm_estimate(&dcbm_costs[i][DCBM_ONE], batch) < cpu ||
		    dcbm_estimate(&dcbm_costs[i][DCBM_ALL], batch) < cpu)
			return true;
	return false;
}

/* The slowest engine of the job decides. */
static u64 dcbm_estimate_job(const struct dcbm_job *job, unsigned int nr,
			     unsigned int mode)
{
	u64 ns = 0;
	unsigned int i;

	for (i = 0; i < nr; i++) {
		unsigned int row = dcbm_quirks_index(job->ch[i]->quirks);

		ns = max(ns, dcbm_estimate(&dcbm_costs[row][mode], job->batch));
	}
	return ns;
}

/**
 * dcbm_pick_channels() - how many of a job's channels should copy its batch?
 * @job: the job, with its channels
 *
 * Context: any.
 * Return: all of them, one, or 0 if the CPU is faster.
 */
unsigned int dcbm_pick_channels(const struct dcbm_job *job)
{
	u64 cpu = dcbm_cpu_estimate(job->batch);
	u64 one = dcbm_estimate_job(job, 1, DCBM_ONE);
	u64 all = dcbm_estimate_job(job, job->nr, DCBM_ALL);

	if (min(one, all) >= cpu)
		return 0;
	return all < one ? job->nr : 1;
}

static void dcbm_show_cost(struct seq_file *m, const char *name,
			   const char *mode, const struct dcbm_cost *cost)
{
	if (cost->known)
		seq_printf(m,
			   "%s, %s: %llu ns a batch, %llu/1024 ns a folio, %llu/1024 ns a byte\n",
			   name, mode, cost->base_ns, cost->folio_ns,
			   cost->byte_ns);
}

/** dcbm_show_costs() - print the figures for debugfs; dcbm_mutex held */
void dcbm_show_costs(struct seq_file *m)
{
	unsigned int i;

	seq_printf(m, "cpu: %llu/1024 ns a byte\n", dcbm_cpu_byte_ns);
	for (i = 0; i < DCBM_NR_QUIRKS; i++) {
		const char *name = dcbm_quirks_nth(i)->driver ?: "other";

		dcbm_show_cost(m, name, "one channel",
			       &dcbm_costs[i][DCBM_ONE]);
		dcbm_show_cost(m, name, "all channels",
			       &dcbm_costs[i][DCBM_ALL]);
	}
}
