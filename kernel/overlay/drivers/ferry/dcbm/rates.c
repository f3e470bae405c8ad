// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Rates of engines and CPUs
 *
 * An engine is a device with DMA channels. Every transfer that completes is a
 * sample of two rates of its engine: the bytes that a channel copies in a
 * millisecond, from the claim to the completion, and the bytes for which the
 * CPU spends a millisecond on mapping, submitting, unmapping and verifying. The
 * rate of the calling CPU is learned from its part of each batch, for each node
 * of destinations: in all the time that it has for that, because interrupts
 * come between chunks, too.
 *
 * The rates depend on how many channels of the engine work at the same time,
 * because they may share its bandwidth, on the size of the folios, because each
 * takes a descriptor, and on the size of the transfer, because of its fixed
 * cost. So there is a pair of rates for each class of these three.
 *
 * dcbm uses the rates for three decisions:
 *
 *   - Whether a channel is tried at all, see dcbm_is_useful(). Whether channels
 *     copy the batch then is the decision of choice.c.
 *   - How much a channel claims: its share of the batch, see copy.c.
 *   - How long it may take, see copy.c.
 *
 * A rate that has not been confirmed for DCBM_AGE is forgotten, so an engine
 * that was slow is tried again, with a transfer of DCBM_MIN_TRANSFER.
 *
 * An engine that fails rests: for DCBM_MIN_REST, and for twice as long each
 * time that it fails again. After the rest one batch tries it, even if choice.c
 * has found the CPUs faster. While it works each transfer halves the rest.
 * Until that is 0 all batches try the engine.
 *
 * Locking: an engine belongs to its channels. dcbm_mutex protects the table.
 * Batches read and write rates and rests without a lock, since each is one word
 * and a lost update loses one sample.
 */

#include <linux/jiffies.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/nodemask.h>
#include <linux/seq_file.h>

#include "internal.h"

#define DCBM_MIN_REST		(HZ / 10)
#define DCBM_MAX_REST		(15 * HZ)
/* Failures of one batch count as one. */
#define DCBM_SAME_FAILURE	(HZ / 20)

/* Transfers: below 256 KiB, below 1 MiB, others. */
#define DCBM_SIZES		3

/**
 * struct dcbm_rate - learned rates
 * @copy:	bytes per ms of a channel, 0 if unknown
 * @cpu:	bytes per ms of CPU time
 * @stamp:	in jiffies; when they were confirmed
 */
struct dcbm_rate {
	unsigned long copy;
	unsigned long cpu;
	unsigned long stamp;
};

/**
 * struct dcbm_engine - a device and its rates
 * @provider:	the device
 * @nr_channels: its channels that are held
 * @rest:	length of the next rest, in jiffies; 0 if it works
 * @rest_until:	end of the current one
 * @failed:	in jiffies; when it failed last
 * @why:	how
 * @rates:	its rates
 */
struct dcbm_engine {
	const struct device *provider;
	unsigned int nr_channels;
	unsigned long rest;
	unsigned long rest_until;
	unsigned long failed;
	const char *why;
	struct dcbm_rate rates[DCBM_COUNTS][DCBM_FOLIOS][DCBM_SIZES];
};

static struct dcbm_engine dcbm_engines[DCBM_MAX_CHANNELS];
/* Bytes per ms of one CPU, to each node; 0 if unknown. */
static struct dcbm_rate dcbm_cpu_rates[MAX_NUMNODES];

/**
 * dcbm_engine_get() - find or make the engine of a device
 * @provider: the device
 *
 * Context: dcbm_mutex held. There are as many entries as channels.
 * Return: the engine, for dcbm_engine_put().
 */
struct dcbm_engine *dcbm_engine_get(const struct device *provider)
{
	struct dcbm_engine *engine, *unused = NULL;

	for (engine = dcbm_engines;
	     engine < dcbm_engines + DCBM_MAX_CHANNELS; engine++) {
		if (!engine->nr_channels)
			unused = unused ?: engine;
		else if (engine->provider == provider)
			break;
	}
	if (engine == dcbm_engines + DCBM_MAX_CHANNELS) {
		engine = unused;
		*engine = (struct dcbm_engine) { .provider = provider };
	}
	engine->nr_channels++;
	return engine;
}

/** dcbm_engine_put() - a channel of the device is released; dcbm_mutex held */
void dcbm_engine_put(struct dcbm_engine *engine)
{
	engine->nr_channels--;
}

/**
 * dcbm_engine_rests() - check whether an engine rests
 * @engine: the engine
 *
 * At the end of a rest the first caller may use the engine. All others must
 * wait until it works, or fails again.
 *
 * Context: any.
 */
bool dcbm_engine_rests(struct dcbm_engine *engine)
{
	unsigned long rest = READ_ONCE(engine->rest);

	if (!rest || READ_ONCE(dcbm_tuning.force_offload))
		return false;
	if (time_before(jiffies, READ_ONCE(engine->rest_until)))
		return true;
	WRITE_ONCE(engine->rest_until, jiffies + rest);
	return false;
}

/** dcbm_engine_is_tried() - is the engine tried after a failure? */
bool dcbm_engine_is_tried(const struct dcbm_engine *engine)
{
	return READ_ONCE(engine->rest);
}

/**
 * dcbm_engine_failed() - let an engine rest
 * @engine:	the engine
 * @why:	a constant string for debugfs
 *
 * Context: any.
 */
void dcbm_engine_failed(struct dcbm_engine *engine, const char *why)
{
	unsigned long rest = READ_ONCE(engine->rest);

	if (!rest || time_after(jiffies, READ_ONCE(engine->failed) +
					 DCBM_SAME_FAILURE))
		rest = clamp(2 * rest, DCBM_MIN_REST, DCBM_MAX_REST);
	WRITE_ONCE(engine->why, why);
	WRITE_ONCE(engine->failed, jiffies);
	WRITE_ONCE(engine->rest_until, jiffies + rest);
	WRITE_ONCE(engine->rest, rest);
}

static void dcbm_engine_worked(struct dcbm_engine *engine)
{
	unsigned long rest = READ_ONCE(engine->rest) / 2;

	if (!READ_ONCE(engine->rest))
		return;
	WRITE_ONCE(engine->rest, rest < DCBM_MIN_REST ? 0 : rest);
	/* Unless it has failed in the meantime. */
	if (time_after(jiffies, READ_ONCE(engine->failed) + DCBM_SAME_FAILURE))
		WRITE_ONCE(engine->rest_until, jiffies);
}

static unsigned int dcbm_size_class(size_t bytes, size_t first)
{
	if (bytes < first)
		return 0;
	return bytes < SZ_1M ? 1 : 2;
}

/** dcbm_folio_class() - class of the size of a job's folios */
unsigned int dcbm_folio_class(const struct dcbm_job *job)
{
	return dcbm_size_class(job->batch->bytes / job->batch->nr, SZ_64K);
}

static struct dcbm_rate *dcbm_rates_of(const struct dcbm_job *job,
				       struct dcbm_engine *engine)
{
	unsigned int i, nr = 0;

	for (i = 0; i < job->nr; i++)
		nr += job->ch[i]->engine == engine;
	return engine->rates[ilog2(nr)][dcbm_folio_class(job)];
}

/**
 * dcbm_average() - add a sample to a running mean
 * @rate:	the mean in bytes per ms, 0 before the first sample
 * @bytes:	size of the copy
 * @ns:		its time
 */
void dcbm_average(unsigned long *rate, size_t bytes, u64 ns)
{
	unsigned long now = max(div64_u64(bytes * NSEC_PER_MSEC, ns ?: 1), 1);
	unsigned long old = READ_ONCE(*rate);

	WRITE_ONCE(*rate, old ? (3 * old + now) / 4 : now);
}

static bool dcbm_is_known(const struct dcbm_rate *rate)
{
	return READ_ONCE(rate->copy) &&
	       time_before(jiffies, READ_ONCE(rate->stamp) + DCBM_AGE);
}

static void dcbm_confirm(struct dcbm_rate *rate)
{
	if (!dcbm_is_known(rate)) {
		WRITE_ONCE(rate->copy, 0);
		WRITE_ONCE(rate->cpu, 0);
	}
	WRITE_ONCE(rate->stamp, jiffies);
}

/**
 * dcbm_learn() - learn from a transfer that is complete
 * @job:	its job
 * @transfer:	the transfer
 * @done:	bytes that its channel copied in @ns, of any of its transfers
 * @ns:		time from its claim to its completion
 *
 * Context: any.
 */
void dcbm_learn(const struct dcbm_job *job,
		const struct dcbm_transfer *transfer, size_t done, u64 ns)
{
	struct dcbm_channel *ch = transfer->ch;
	struct dcbm_rate *rate = dcbm_rates_of(job, ch->engine);

	rate += dcbm_size_class(transfer->bytes, SZ_256K);
	dcbm_confirm(rate);
	dcbm_average(&rate->cpu, transfer->bytes, transfer->cpu_ns);
	dcbm_average(&rate->copy, done, ns);
	ch->rate = READ_ONCE(rate->copy);
	ch->cost = READ_ONCE(rate->cpu);
	dcbm_engine_worked(ch->engine);
}

/**
 * dcbm_learn_cpu() - learn from the calling CPU's part of a batch
 * @job:	the job
 *
 * Context: any.
 */
void dcbm_learn_cpu(const struct dcbm_job *job)
{
	struct dcbm_rate *rate = &dcbm_cpu_rates[job->batch->dst_nid];

	dcbm_confirm(rate);
	dcbm_average(&rate->copy, job->cpu_bytes, job->cpu_ns);
}

/*
 * The rates for transfers of about this size. If there are none, those for
 * other sizes are nearer than none at all.
 */
static const struct dcbm_rate *dcbm_lookup(const struct dcbm_job *job,
					   struct dcbm_engine *engine,
					   size_t bytes)
{
	const struct dcbm_rate *rates = dcbm_rates_of(job, engine);
	unsigned int size = dcbm_size_class(bytes, SZ_256K), i;

	if (dcbm_is_known(&rates[size]))
		return &rates[size];
	for (i = 0; i < DCBM_SIZES; i++)
		if (dcbm_is_known(&rates[i]))
			return &rates[i];
	return NULL;
}

/**
 * dcbm_expect() - set the expected rates of a job's channels and of the CPU
 * @job: the job, with its channels
 *
 * Context: any.
 */
void dcbm_expect(struct dcbm_job *job)
{
	const struct dcbm_rate *cpu = &dcbm_cpu_rates[job->batch->dst_nid];
	unsigned int i;

	job->cpu_rate = dcbm_is_known(cpu) ? READ_ONCE(cpu->copy) : 0;
	for (i = 0; i < job->nr; i++) {
		struct dcbm_channel *ch = job->ch[i];
		const struct dcbm_rate *rate;

		rate = dcbm_lookup(job, ch->engine,
				   job->batch->bytes / job->nr);
		ch->rate = rate ? READ_ONCE(rate->copy) : 0;
		ch->cost = rate ? READ_ONCE(rate->cpu) : 0;
	}
}

/** dcbm_channels_rate() - the expected rate of all channels of a job */
unsigned long dcbm_channels_rate(const struct dcbm_job *job)
{
	unsigned long rate = 0;
	unsigned int i;

	for (i = 0; i < job->nr; i++)
		rate += job->ch[i]->rate;
	return rate;
}

/** dcbm_cpus_rate() - the expected rate of a job's CPUs, 0 if unknown */
unsigned long dcbm_cpus_rate(const struct dcbm_job *job)
{
	return job->cpu_rate * (1 + ferry_mtcopy_nr_helpers(job->cpus));
}

/**
 * dcbm_job_rate() - the expected rate of all that copy a job's batch
 * @job: the job
 *
 * While the calling CPU gives channels their transfers it copies nothing.
 *
 * Context: any.
 */
unsigned long dcbm_job_rate(const struct dcbm_job *job)
{
	unsigned long rate = dcbm_channels_rate(job);
	u64 lost = 0;
	unsigned int i;

	if (!dcbm_cpu_copies(job))
		return rate;
	for (i = 0; i < job->nr; i++)
		lost += div64_u64((u64)job->cpu_rate * job->ch[i]->rate,
				  job->ch[i]->cost ?: ULONG_MAX);
	return rate + dcbm_cpus_rate(job) - min(lost, job->cpu_rate);
}

/**
 * dcbm_is_useful() - does a channel gain anything for a batch?
 * @job:	the job, after dcbm_expect()
 * @ch:		one of its channels
 *
 * Context: any.
 * Return: false if the CPU spends at least three quarters of the time of a copy
 * on the channel's transfers, or if the channel is so slow that its share of
 * the batch is less than DCBM_MIN_TRANSFER.
 */
bool dcbm_is_useful(const struct dcbm_job *job, const struct dcbm_channel *ch)
{
	u64 all = job->cpu_rate + dcbm_channels_rate(job);

	if (!ch->rate || !job->cpu_rate || READ_ONCE(dcbm_tuning.force_offload))
		return true;
	if (3 * ch->cost < 4 * job->cpu_rate)
		return false;
	return (u64)job->batch->bytes * ch->rate >= all * DCBM_MIN_TRANSFER;
}

const char * const dcbm_folio_names[] = { "<64K", "<1M", ">=1M" };

static void dcbm_show_rate(struct seq_file *m, const struct dcbm_engine *engine,
			   unsigned int count, unsigned int folio,
			   unsigned int size)
{
	static const char * const sizes[] = { "<256K", "<1M", ">=1M" };
	const struct dcbm_rate *rate = &engine->rates[count][folio][size];

	if (!dcbm_is_known(rate))
		return;
	seq_printf(m, "  channels=%u folios%s transfers%s: ", 1 << count,
		   dcbm_folio_names[folio], sizes[size]);
	seq_printf(m, "%lu bytes/ms, %lu bytes/ms of CPU time\n", rate->copy,
		   rate->cpu);
}

static void dcbm_show_rates(struct seq_file *m,
			    const struct dcbm_engine *engine)
{
	unsigned int count, folio, size;

	for (count = 0; count < DCBM_COUNTS; count++)
		for (folio = 0; folio < DCBM_FOLIOS; folio++)
			for (size = 0; size < DCBM_SIZES; size++)
				dcbm_show_rate(m, engine, count, folio, size);
}

/** dcbm_show_engines() - print all for debugfs; dcbm_mutex held */
void dcbm_show_engines(struct seq_file *m)
{
	const struct dcbm_engine *engine;
	int nid;

	for_each_online_node(nid)
		if (dcbm_is_known(&dcbm_cpu_rates[nid]))
			seq_printf(m, "cpu to node %d: %lu bytes/ms\n", nid,
				   dcbm_cpu_rates[nid].copy);
	for (engine = dcbm_engines;
	     engine < dcbm_engines + DCBM_MAX_CHANNELS; engine++) {
		if (!engine->nr_channels)
			continue;
		seq_printf(m, "%s: ", dev_name(engine->provider));
		if (engine->rest)
			seq_printf(m, "rests %u ms after %s\n",
				   jiffies_to_msecs(engine->rest), engine->why);
		else
			seq_puts(m, "works\n");
		dcbm_show_rates(m, engine);
	}
}
