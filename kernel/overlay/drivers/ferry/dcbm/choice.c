// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: CPUs, channels or both
 *
 * The rates of single transfers (rates.c) do not tell how fast a batch is
 * copied: while one task submits the transfers of many channels in turn, others
 * wait, the last one ends late, a driver's interrupts take time from CPUs that
 * copy, and all share the memory's bandwidth. So dcbm compares whole batches,
 * copied by the CPUs, by channels alone and by both, and keeps to the fastest.
 * The migrator dcbm spares the CPUs: they take part only if channels alone are
 * slower than they are.
 *
 * There is such a comparison for each node of destinations, for each class of
 * folios and numbers of channels, and for batches with and without helpers.
 * Every DCBM_AGE it is made again: DCBM_TRIALS batches are copied in each way,
 * in turn. Where batches are rare, a comparison that channels lost comes again
 * only after DCBM_LEFT batches, so that slow ones are few. And a batch that has
 * taken DCBM_LOST_TIMES as long as the CPUs need is lost: its channels get
 * nothing more, and CPUs copy the rest.
 *
 * A batch that the CPUs alone would not copy in batch_max_us is left to the
 * channels. Batches become so large only while channels are faster.
 * So is one that tries an engine after a failure: the next such batch may come
 * more than DCBM_AGE later, when all is measured again. It is no comparison,
 * and neither is a batch of which channels left folios to the move phase,
 * unless they have lost it. A batch that gives a channel its first transfer is
 * one only if no other came in DCBM_AGE: where batches are rare each is such.
 *
 * Locking: none. Batches read and write single words; a lost update loses one
 * sample.
 */

#include <linux/jiffies.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/nodemask.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "internal.h"

/*
 * Two, and the faster one counts, because the other may have been disturbed. Of
 * hundreds of batches in DCBM_AGE those that are slower do not matter.
 */
#define DCBM_TRIALS		2
/* After most of them, mm/ferry lets the CPU migrate 64 lists without dcbm. */
#define DCBM_LEFT		4
/* More than a disturbance, and little beside all batches. */
#define DCBM_LOST_TIMES		2

/**
 * struct dcbm_choice - the ways to copy batches of one class
 * @rate:	bytes per ms of batches copied in each
 * @nr:		their numbers in this comparison
 * @nr_left:	batches for which the CPUs won since it was complete
 * @stamp:	in jiffies; when it began, or when its last trial ended
 */
struct dcbm_choice {
	unsigned long rate[DCBM_WAYS];
	unsigned int nr[DCBM_WAYS];
	unsigned int nr_left;
	unsigned long stamp;
};

/* For each node of destinations, without helpers and with them. */
static struct dcbm_choice (*dcbm_choices)[2][DCBM_COUNTS][DCBM_FOLIOS];

static struct dcbm_choice *dcbm_choice_of(const struct dcbm_job *job)
{
	unsigned int helpers = ferry_mtcopy_nr_helpers(job->cpus);

	return &dcbm_choices[job->batch->dst_nid][!!helpers]
		[ilog2(job->nr)][dcbm_folio_class(job)];
}

/* Measure again. The rate of the CPUs tells how large a batch they can copy. */
static void dcbm_choice_restart(struct dcbm_choice *choice)
{
	enum dcbm_way way;

	for (way = 0; way < DCBM_WAYS; way++)
		WRITE_ONCE(choice->nr[way], 0);
	WRITE_ONCE(choice->nr_left, 0);
	WRITE_ONCE(choice->stamp, jiffies);
}

static bool dcbm_choice_is_old(const struct dcbm_choice *choice)
{
	return time_after(jiffies, READ_ONCE(choice->stamp) + DCBM_AGE);
}

static unsigned int dcbm_trials(const struct dcbm_choice *choice,
				enum dcbm_way way)
{
	return min(READ_ONCE(choice->nr[way]), DCBM_TRIALS);
}

/* Would the CPUs alone keep the batch locked for too long? */
static bool dcbm_is_too_large(const struct dcbm_job *job,
			      const struct dcbm_choice *choice)
{
	u64 rate = READ_ONCE(choice->rate[DCBM_BY_CPUS]) ?: job->cpu_rate;
	u64 most = div_u64(rate * job->batch->max_us, USEC_PER_MSEC);

	return job->batch->bytes > max(most, DCBM_MAX_TRANSFER);
}

/* Are the channels expected to be slower than the CPUs, or is that unknown? */
static bool dcbm_is_slower(const struct dcbm_job *job)
{
	unsigned long cpus = dcbm_cpus_rate(job);

	return !cpus || dcbm_channels_rate(job) < cpus;
}

/* Were batches of channels alone slower than those of the CPUs? */
static bool dcbm_was_slower(const struct dcbm_choice *choice)
{
	return dcbm_trials(choice, DCBM_BY_CHANNELS) == DCBM_TRIALS &&
	       READ_ONCE(choice->rate[DCBM_BY_CHANNELS]) <=
	       READ_ONCE(choice->rate[DCBM_BY_CPUS]);
}

static bool dcbm_may_copy(const struct dcbm_job *job,
			  const struct dcbm_choice *choice, enum dcbm_way way)
{
	switch (way) {
	case DCBM_BY_CPUS:
		return !dcbm_is_too_large(job, choice);
	case DCBM_BY_CHANNELS:
		return !dcbm_is_slower(job);
	default:
		return !job->spares_cpus || dcbm_is_slower(job) ||
		       dcbm_was_slower(choice);
	}
}

/* Has the way @a had fewer trials than @b, or won them? */
static bool dcbm_is_better(const struct dcbm_choice *choice, enum dcbm_way a,
			   enum dcbm_way b)
{
	unsigned int nr_a = dcbm_trials(choice, a);
	unsigned int nr_b = dcbm_trials(choice, b);

	if (nr_a != nr_b)
		return nr_a < nr_b;
	return nr_a == DCBM_TRIALS && READ_ONCE(choice->rate[a]) >
				      READ_ONCE(choice->rate[b]);
}

/* The way with the fewest trials, or the fastest if each has had all. */
static enum dcbm_way dcbm_best_way(const struct dcbm_job *job,
				   const struct dcbm_choice *choice)
{
	enum dcbm_way way, best = DCBM_WAYS;

	for (way = 0; way < DCBM_WAYS; way++) {
		if (dcbm_may_copy(job, choice, way) &&
		    (best == DCBM_WAYS || dcbm_is_better(choice, way, best)))
			best = way;
	}
	return best;
}

/* Is it time to measure again? A comparison that has begun goes on. */
static bool dcbm_choice_is_due(const struct dcbm_choice *choice,
			       enum dcbm_way best)
{
	return dcbm_trials(choice, best) == DCBM_TRIALS &&
	       dcbm_choice_is_old(choice) &&
	       (best != DCBM_BY_CPUS ||
		READ_ONCE(choice->nr_left) >= DCBM_LEFT);
}

/* Does the job give a channel its first transfer? */
static bool dcbm_is_first_try(const struct dcbm_job *job)
{
	unsigned int i;

	for (i = 0; i < job->nr; i++)
		if (!job->ch[i]->rate)
			return true;
	return false;
}

static bool dcbm_is_trial(const struct dcbm_job *job)
{
	unsigned int i;

	for (i = 0; i < job->nr; i++)
		if (dcbm_engine_is_tried(job->ch[i]->engine))
			return true;
	return false;
}

/* After so long channels that are compared have lost the job's batch. */
static u64 dcbm_lost_ns(const struct dcbm_job *job,
			const struct dcbm_choice *choice)
{
	if (!dcbm_trials(choice, DCBM_BY_CPUS))
		return 0;
	return div64_u64(DCBM_LOST_TIMES * NSEC_PER_MSEC * job->batch->bytes,
			 READ_ONCE(choice->rate[DCBM_BY_CPUS]) ?: 1);
}

/**
 * dcbm_choose() - choose the way to copy the batch of a job
 * @job: the job, after dcbm_expect(), with its channels and its CPUs
 *
 * Sets @job->way, @job->measured, @job->choice and @job->lost_ns.
 *
 * Context: any.
 */
void dcbm_choose(struct dcbm_job *job)
{
	struct dcbm_choice *choice = dcbm_choice_of(job);
	bool force = READ_ONCE(dcbm_tuning.force_offload);

	job->choice = NULL;
	job->measured = false;
	job->lost_ns = 0;
	if (force || dcbm_is_trial(job)) {
		job->way = job->spares_cpus && (force || !dcbm_is_slower(job)) ?
			   DCBM_BY_CHANNELS : DCBM_BY_BOTH;
		return;
	}
	job->way = dcbm_best_way(job, choice);
	if (dcbm_choice_is_due(choice, job->way)) {
		dcbm_choice_restart(choice);
		job->way = dcbm_best_way(job, choice);
	}
	job->measured = dcbm_trials(choice, job->way) < DCBM_TRIALS;
	if (job->way == DCBM_BY_CPUS && !job->measured)
		WRITE_ONCE(choice->nr_left, READ_ONCE(choice->nr_left) + 1);
	if (job->way != DCBM_BY_CPUS && job->measured)
		job->lost_ns = dcbm_lost_ns(job, choice);
	if (job->way == DCBM_BY_CPUS || !job->measured ||
	    !dcbm_is_first_try(job) || dcbm_choice_is_old(choice))
		job->choice = choice;
}

/**
 * dcbm_learn_batch() - learn from a batch that is copied
 * @job:	its job
 * @ns:		time of the copy
 *
 * Context: any.
 */
void dcbm_learn_batch(const struct dcbm_job *job, u64 ns)
{
	struct dcbm_choice *choice = job->choice;
	unsigned long sample = 0, *rate;
	unsigned int nr;

	if (!choice)
		return;
	rate = &choice->rate[job->way];
	nr = READ_ONCE(choice->nr[job->way]);
	if (nr >= DCBM_TRIALS) {
		dcbm_average(rate, job->batch->bytes, ns);
		return;
	}
	dcbm_average(&sample, job->batch->bytes, ns);
	WRITE_ONCE(*rate, nr ? max(READ_ONCE(*rate), sample) : sample);
	WRITE_ONCE(choice->nr[job->way], nr + 1);
	WRITE_ONCE(choice->stamp, jiffies);
}

/**
 * dcbm_choices_forget() - compare again, because there are other channels
 *
 * Context: process context, no channel held.
 */
void dcbm_choices_forget(void)
{
	memset(dcbm_choices, 0, array_size(nr_node_ids, sizeof(*dcbm_choices)));
}

/** dcbm_choices_init() - allocate the choices. Return: 0 or -ENOMEM */
int dcbm_choices_init(void)
{
	dcbm_choices = kvcalloc(nr_node_ids, sizeof(*dcbm_choices), GFP_KERNEL);
	return dcbm_choices ? 0 : -ENOMEM;
}

/** dcbm_choices_exit() - free them; no batch uses dcbm any more */
void dcbm_choices_exit(void)
{
	kvfree(dcbm_choices);
}

static void dcbm_show_choice(struct seq_file *m, int nid, unsigned int helpers,
			     unsigned int count, unsigned int folio)
{
	const struct dcbm_choice *choice =
		&dcbm_choices[nid][helpers][count][folio];

	if (!choice->rate[DCBM_BY_CPUS])
		return;
	seq_printf(m, "to node %d: channels=%u%s folios%s: ", nid, 1 << count,
		   helpers ? " helpers" : "", dcbm_folio_names[folio]);
	seq_printf(m, "CPUs %lu, channels %lu, both %lu bytes/ms\n",
		   choice->rate[DCBM_BY_CPUS], choice->rate[DCBM_BY_CHANNELS],
		   choice->rate[DCBM_BY_BOTH]);
}

/** dcbm_show_choices() - print all for debugfs */
void dcbm_show_choices(struct seq_file *m)
{
	unsigned int helpers, count, folio;
	int nid;

	for_each_online_node(nid)
		for (helpers = 0; helpers < 2; helpers++)
			for (count = 0; count < DCBM_COUNTS; count++)
				for (folio = 0; folio < DCBM_FOLIOS; folio++)
					dcbm_show_choice(m, nid, helpers, count,
							 folio);
}
