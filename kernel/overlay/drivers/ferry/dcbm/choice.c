// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: With channels or without
 *
 * The rates of single transfers (rates.c) do not tell how fast a batch is
 * copied: while one task submits the transfers of many channels in turn, others
 * wait, the last one ends late, and a driver's interrupts take time from CPUs
 * that copy. So dcbm compares whole batches, copied with channels and without.
 * If channels alone are slower than the CPU, it lets the CPU take part; if that
 * is slower, too, it leaves the channels out.
 *
 * There is such a pair of rates for each node of destinations, for each class
 * of folios and numbers of channels, and for each way in which CPUs take part.
 * Every DCBM_AGE both are measured again: DCBM_TRIALS batches of each kind are
 * copied in turn. Where batches are rare, a comparison that channels lost comes
 * again only after DCBM_LEFT batches, so that slow ones are few. And a batch
 * that has taken DCBM_LOST_TIMES as long as the CPUs need is lost: its channels
 * get nothing more, and CPUs copy the rest.
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

/* How CPUs take part beside channels: not, the calling one, or with helpers. */
#define DCBM_MODES		3
/*
 * Two, because one may have been disturbed. Of hundreds of batches in DCBM_AGE
 * those that are slower do not matter.
 */
#define DCBM_TRIALS		2
/* After most of them, mm/ferry lets the CPU migrate 64 lists without dcbm. */
#define DCBM_LEFT		4
/* More than a disturbance, and little beside all batches. */
#define DCBM_LOST_TIMES		2

/**
 * struct dcbm_choice - with channels or without, for batches of one class
 * @cpu_rate:	bytes per us of batches that CPUs alone copied
 * @nr_cpu:	their number
 * @rate:	bytes per us of batches that channels copied, with CPUs or not
 * @nr:		their number
 * @nr_left:	batches for which the CPUs won since both were measured
 * @stamp:	in jiffies; when the numbers were 0, or were complete
 */
struct dcbm_choice {
	unsigned long cpu_rate;
	unsigned int nr_cpu;
	unsigned long rate;
	unsigned int nr;
	unsigned int nr_left;
	unsigned long stamp;
};

struct dcbm_choices {
	struct dcbm_choice of[DCBM_MODES][DCBM_COUNTS][DCBM_FOLIOS];
};

/* One for each node of destinations. */
static struct dcbm_choices *dcbm_choices;

static struct dcbm_choice *dcbm_choice_of(const struct dcbm_job *job)
{
	unsigned int helpers = ferry_mtcopy_nr_helpers(job->cpus);

	return &dcbm_choices[job->batch->dst_nid]
		.of[job->cpu_copies + !!helpers]
		   [dcbm_count_class(job->nr)][dcbm_folio_class(job)];
}

/* Measure again. The rate of the CPUs tells how large a batch they can copy. */
static void dcbm_choice_restart(struct dcbm_choice *choice)
{
	WRITE_ONCE(choice->nr_cpu, 0);
	WRITE_ONCE(choice->rate, 0);
	WRITE_ONCE(choice->nr, 0);
	WRITE_ONCE(choice->nr_left, 0);
	WRITE_ONCE(choice->stamp, jiffies);
}

static bool dcbm_choice_is_old(const struct dcbm_choice *choice)
{
	return time_after(jiffies, READ_ONCE(choice->stamp) + DCBM_AGE);
}

/* Is it time to measure again? A comparison that has begun goes on. */
static bool dcbm_choice_is_due(const struct dcbm_choice *choice)
{
	if (!READ_ONCE(choice->nr_cpu))
		return true;
	if (READ_ONCE(choice->nr) < DCBM_TRIALS || !dcbm_choice_is_old(choice))
		return false;
	return READ_ONCE(choice->rate) > READ_ONCE(choice->cpu_rate) ||
	       READ_ONCE(choice->nr_left) >= DCBM_LEFT;
}

/* Do channels win? Count a batch that is left to the CPUs. */
static enum dcbm_verdict dcbm_compare(struct dcbm_choice *choice)
{
	if (READ_ONCE(choice->rate) > READ_ONCE(choice->cpu_rate))
		return DCBM_CHANNELS;
	WRITE_ONCE(choice->nr_left, READ_ONCE(choice->nr_left) + 1);
	return DCBM_CPUS;
}

/* Would the CPUs alone keep the batch locked for too long? */
static bool dcbm_is_too_large(const struct dcbm_job *job,
			      const struct dcbm_choice *choice)
{
	u64 rate = READ_ONCE(choice->cpu_rate) ?: job->cpu_rate;
	u64 most = max(rate * job->batch->max_us, DCBM_MAX_TRANSFER);

	return job->batch->bytes > most;
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

/**
 * dcbm_choose() - decide whether the channels of a job copy its batch
 * @job:	the job, after dcbm_expect(), with its channels and its CPUs;
 *		@job->cpu_copies tells whether the calling one takes part
 *
 * Context: any.
 * Return: the verdict.
 */
enum dcbm_verdict dcbm_choose(struct dcbm_job *job)
{
	struct dcbm_choice *choice = dcbm_choice_of(job);
	unsigned int nr, nr_cpu;

	job->choice = NULL;
	job->lost_ns = 0;
	if (READ_ONCE(dcbm_tuning.force_offload) || dcbm_is_trial(job))
		return DCBM_CHANNELS;
	if (dcbm_choice_is_due(choice))
		dcbm_choice_restart(choice);
	nr = READ_ONCE(choice->nr);
	nr_cpu = READ_ONCE(choice->nr_cpu);
	job->choice = choice;
	if (nr >= DCBM_TRIALS)
		return dcbm_compare(choice);
	if (nr_cpu <= nr && !dcbm_is_too_large(job, choice))
		return DCBM_MEASURE_CPUS;
	if (nr_cpu > nr)
		job->lost_ns = div64_u64(DCBM_LOST_TIMES * NSEC_PER_USEC *
					 job->batch->bytes,
					 READ_ONCE(choice->cpu_rate) ?: 1);
	if (nr_cpu <= nr ||
	    (dcbm_is_first_try(job) && !dcbm_choice_is_old(choice)))
		job->choice = NULL;
	return DCBM_CHANNELS;
}

/**
 * dcbm_learn_batch() - learn from a batch that is copied
 * @job:	its job
 * @channels:	it began with channels
 * @ns:		time of the copy
 *
 * Context: any.
 */
void dcbm_learn_batch(const struct dcbm_job *job, bool channels, u64 ns)
{
	struct dcbm_choice *choice = job->choice;

	if (!choice)
		return;
	if (channels) {
		dcbm_average(&choice->rate, job->batch->bytes, ns);
		WRITE_ONCE(choice->nr, READ_ONCE(choice->nr) + 1);
		if (READ_ONCE(choice->nr) == DCBM_TRIALS)
			WRITE_ONCE(choice->stamp, jiffies);
	} else {
		dcbm_average(&choice->cpu_rate, job->batch->bytes, ns);
		WRITE_ONCE(choice->nr_cpu, READ_ONCE(choice->nr_cpu) + 1);
	}
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

static void dcbm_show_choice(struct seq_file *m, int nid, unsigned int mode,
			     unsigned int count, unsigned int folio)
{
	static const char * const modes[] = { "alone", "and CPU", "and CPUs" };
	const struct dcbm_choice *choice =
		&dcbm_choices[nid].of[mode][count][folio];

	if (!choice->nr_cpu)
		return;
	seq_printf(m, "to node %d: channels=%u %s folios%s: ", nid, 1 << count,
		   modes[mode], dcbm_folio_names[folio]);
	seq_printf(m, "%lu bytes/us, %lu without channels\n", choice->rate,
		   choice->cpu_rate);
}

/** dcbm_show_choices() - print all for debugfs */
void dcbm_show_choices(struct seq_file *m)
{
	unsigned int mode, count, folio;
	int nid;

	for_each_online_node(nid)
		for (mode = 0; mode < DCBM_MODES; mode++)
			for (count = 0; count < DCBM_COUNTS; count++)
				for (folio = 0; folio < DCBM_FOLIOS; folio++)
					dcbm_show_choice(m, nid, mode, count,
							 folio);
}
