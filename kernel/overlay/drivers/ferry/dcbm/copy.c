// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Copying a batch by channels and CPUs
 *
 * Life cycle of a job:
 *
 * 1. The caller claims its channels, see dcbm_claim(), and begins a job of
 *    mtcopy's.
 * 2. Each channel claims a part of the batch, from the back. The part is mapped
 *    and submitted as a transfer. When the transfer is complete, its folios get
 *    their status, and the channel claims its next part.
 * 3. CPUs claim from the front, as far as they take part: the calling one
 *    between its looks at the channels, and helpers on their own.
 * 4. When nothing is left, the channels are given back, except those that hang,
 *    which hung.c keeps.
 *
 * A channel claims its share of all bytes that are not copied yet, in
 * proportion to the expected rates (rates.c), less all that it has in flight.
 * So all copiers end at about the same time. While the calling CPU gives
 * channels their transfers it copies nothing, so its expected rate is less by
 * that time. Bytes in flight that their channel is expected to have copied by
 * now count as copied: otherwise the first channel to end its transfer would
 * claim for the others, which end soon after it, and all would wait for that
 * transfer. A share below DCBM_MIN_TRANSFER is left to the CPUs, or to other
 * channels if no CPU takes part. What a share would then leave goes with it if
 * that is less. A channel of which nothing is known claims DCBM_MIN_TRANSFER. A
 * wrong expectation costs little: a channel that is faster claims again, and
 * one that is slower delays the end by its current transfer.
 *
 * If the calling CPU does not take part it sleeps while the channels copy. It
 * does take part if they are slower than itself, and if the job has none.
 *
 * All folios of a batch are locked while it is copied, and a task that touches
 * one of them waits. Its time is therefore limited:
 *
 *   - No channel claims anything after batch_max_us, or after the nanoseconds
 *     that the batch has bytes, or if channels have lost: see choice.c.
 *   - A transfer has a limit: a multiple of its expected time, and at most
 *     DCBM_MAX_TIMES times batch_max_us. No further group of it is submitted so
 *     long after its claim, or if channels have lost. The CPU copies the rest.
 *   - If a group is not complete so long after it was issued, or a quarter of
 *     that after the limit of its transfer, its channel hangs.
 *
 * So the copy ends within three times batch_max_us if no device answers, and
 * within three and a half times if each answers just in time; the second look
 * and the chunks of CPUs come on top.
 *
 * The task that copies may get no CPU for longer than a limit. That does not
 * count against the device, whose time begins when the group is issued. And the
 * task may run again before an interrupt that was as late, so it looks
 * twice, DCBM_MIN_TIMEOUT_NS apart, before it believes that a channel hangs.
 *
 * No memory is allocated: each channel has all that it needs since it is held,
 * and the job lies on the caller's stack.
 */

#include <kunit/visibility.h>
#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/sched.h>
#include <linux/wait.h>

#include "internal.h"

/* The limit of a transfer, in times of its expected duration. */
#define DCBM_EXPECTED_TIMES	8
/* Interrupts and the scheduler may be so late. */
#define DCBM_MIN_TIMEOUT_NS	(2 * NSEC_PER_MSEC)
#define DCBM_MAX_TIMES		2
/* A shorter wait costs less than going to sleep and waking up. */
#define DCBM_SPIN_NS		(20 * NSEC_PER_USEC)

/* Of each job that of its first channel's slot: they outlive channels. */
static struct dcbm_done dcbm_done[DCBM_MAX_CHANNELS];

static u64 dcbm_timeout_ns(void)
{
	return READ_ONCE(dcbm_tuning.timeout_ms) * NSEC_PER_MSEC;
}

/*
 * May the job claim more for its channels? A huge page of hugetlb cannot be
 * divided into batches: as long as a CPU takes for it at 1 GB/s.
 */
static bool dcbm_in_time(const struct dcbm_job *job)
{
	const struct ferry_batch *batch = job->batch;
	u64 max = max(batch->max_us * NSEC_PER_USEC, batch->bytes);

	return job->now - job->start <= max(max, dcbm_timeout_ns()) &&
	       !dcbm_has_lost(job);
}

/* The limit of the channel's transfers. */
static u64 dcbm_limit_ns(const struct dcbm_job *job,
			 const struct dcbm_channel *ch)
{
	u64 most = max(DCBM_MAX_TIMES * job->batch->max_us * NSEC_PER_USEC,
		       DCBM_MIN_TIMEOUT_NS);
	u64 ns = dcbm_timeout_ns();

	if (!ns && ch->rate)
		ns = clamp(div64_u64(DCBM_EXPECTED_TIMES * NSEC_PER_MSEC *
				     ch->claimed, ch->rate),
			   DCBM_MIN_TIMEOUT_NS, most);
	return ns ?: most;
}

/* The bytes in flight that a channel is expected not to have copied yet. */
static u64 dcbm_not_copied(const struct dcbm_job *job,
			   const struct dcbm_channel *ch)
{
	u64 copied = 0;

	if (job->now > ch->copies_since)
		copied = div64_u64(ch->rate * (job->now - ch->copies_since),
				   NSEC_PER_MSEC);
	return ch->claimed - min(ch->claimed, copied);
}

/* The bytes that a channel may claim now. */
VISIBLE_IF_KUNIT size_t dcbm_share(const struct dcbm_job *job,
				   const struct dcbm_channel *ch)
{
	u64 left = ferry_unclaimed(job->claims), unfinished = left, share;
	unsigned int i;

	if (!ch->rate || (dcbm_cpu_copies(job) && !job->cpu_rate))
		return ch->claimed ? 0 : DCBM_MIN_TRANSFER;
	for (i = 0; i < job->nr; i++)
		unfinished += dcbm_not_copied(job, job->ch[i]);
	share = div64_u64(unfinished * ch->rate, dcbm_job_rate(job));
	share = share > ch->claimed ? share - ch->claimed : 0;
	share = round_down(share, PAGE_SIZE);
	/* Without the CPU the channels must copy everything. */
	if (share < DCBM_MIN_TRANSFER)
		return dcbm_cpu_copies(job) || ch->claimed ? 0 :
							     DCBM_MIN_TRANSFER;
	/* And they need no further transfer for the last few pages. */
	if (!dcbm_cpu_copies(job) && share + DCBM_MIN_TRANSFER > left)
		share = left;
	return min(share, DCBM_MAX_TRANSFER);
}

/*
 * The transfer cannot be mapped: its folios are left to the CPU. Others would
 * hardly do better, and since they fail at once, they would take most of the
 * batch from those who can copy.
 */
static void dcbm_not_mapped(struct dcbm_job *job,
			    struct dcbm_transfer *transfer)
{
	struct dcbm_engine *engine = transfer->ch->engine;
	unsigned int i;

	dcbm_count(DCBM_MAP_FAILURES, 1);
	dcbm_engine_failed(engine, "a failed mapping");
	job->choice = NULL;
	for (i = 0; i < job->nr; i++)
		job->ch[i]->done_claiming |= job->ch[i]->engine == engine;
	for (i = 0; i < transfer->nr_segments; i++)
		WRITE_ONCE(job->batch->pairs[transfer->pair[i]].status, -EIO);
}

/* Submit the next group, and take its time for none of the CPU's copy. */
static bool dcbm_submit_next_group(struct dcbm_job *job,
				   struct dcbm_transfer *transfer)
{
	u64 limit = dcbm_limit_ns(job, transfer->ch), begin = ktime_get_ns();
	bool submitted = dcbm_submit_group(transfer, limit);
	u64 ns = ktime_get_ns() - begin;

	transfer->cpu_ns += ns;
	job->other_ns += ns;
	return submitted;
}

/* Give a channel its next transfer: DCBM_IDLE if there is none for it. */
static enum dcbm_state dcbm_next_transfer(struct dcbm_job *job,
					  struct dcbm_transfer *transfer)
{
	struct dcbm_channel *ch = transfer->ch;
	size_t start, bytes = dcbm_share(job, ch);

	bytes = ferry_claim(job->claims, bytes, true, &start);
	if (!bytes)
		return DCBM_IDLE;
	transfer->begun = ktime_get_ns();
	dcbm_fill(transfer, job->batch, start, bytes);
	dcbm_spoil(transfer);
	if (dcbm_map(transfer)) {
		dcbm_not_mapped(job, transfer);
		return DCBM_IDLE;
	}
	transfer->next = 0;
	transfer->group_bytes = 0;
	transfer->begun_bytes = ch->done_bytes;
	transfer->busy = true;
	if (!ch->claimed)
		ch->copies_since = transfer->begun;
	ch->claimed += bytes;
	transfer->deadline = ktime_get_ns() + dcbm_limit_ns(job, ch);
	transfer->cpu_ns = ktime_get_ns() - transfer->begun;
	job->other_ns += transfer->cpu_ns;
	dcbm_count(DCBM_TRANSFERS, 1);
	return dcbm_submit_next_group(job, transfer) ? DCBM_WAITING :
						       DCBM_QUEUE_FULL;
}

/*
 * A transfer without callbacks to wait for: submit more, or end it. A driver
 * that has accepted nothing is asked once more after the time, because the task
 * may not have asked for long.
 */
static enum dcbm_state dcbm_advance(struct dcbm_job *job,
				    struct dcbm_transfer *transfer)
{
	bool late = job->now > transfer->deadline;
	bool cut = transfer->next && (late || dcbm_has_lost(job));

	transfer->ch->done_bytes += transfer->group_bytes;
	transfer->group_bytes = 0;
	if (transfer->next < transfer->nr_descs && !cut) {
		if (dcbm_submit_next_group(job, transfer))
			return DCBM_WAITING;
		if (!late)
			return DCBM_QUEUE_FULL;
	}
	if (late && transfer->next < transfer->nr_descs)
		dcbm_count(transfer->next ? DCBM_DEADLINE_EXCEEDED :
					    DCBM_PREP_FAILURES, 1);
	return dcbm_complete(job, transfer) ? DCBM_IDLE : DCBM_GONE;
}

static enum dcbm_state dcbm_poll_transfer(struct dcbm_job *job,
					  struct dcbm_transfer *transfer)
{
	/* Pairs with the release in dcbm_desc_done(). */
	if (!atomic_read_acquire(&transfer->pending))
		return dcbm_advance(job, transfer);
	if (job->now <= transfer->overdue)
		return DCBM_WAITING;
	if (transfer->late)
		return DCBM_GONE;
	/* Look once more, see the DOC block. */
	transfer->late = true;
	transfer->overdue = job->now + DCBM_MIN_TIMEOUT_NS;
	return DCBM_WAITING;
}

/*
 * Check a channel's transfers, and give it the next ones. Its share grows only
 * when one of them ends, so it is asked for then, not at each look.
 */
static enum dcbm_state dcbm_poll_channel(struct dcbm_job *job,
					 struct dcbm_channel *ch)
{
	enum dcbm_state state = DCBM_IDLE;

	for (struct dcbm_transfer *transfer = ch->transfers;
	     transfer < dcbm_transfers_end(ch); transfer++) {
		if (transfer->busy)
			state |= dcbm_poll_transfer(job, transfer);
		if (state & DCBM_GONE) {
			dcbm_complete_hung(job, ch);
			return DCBM_GONE;
		}
	}
	if (!ch->may_claim)
		return state;
	/* It takes time to give others their transfers. */
	job->now = ktime_get_ns();
	if (!dcbm_in_time(job))
		return state;
	ch->may_claim = false;
	for (struct dcbm_transfer *transfer = ch->transfers;
	     transfer < dcbm_transfers_end(ch); transfer++)
		if (!transfer->busy && !ch->done_claiming &&
		    !(ch->refused && ch->claimed))
			state |= dcbm_next_transfer(job, transfer);
	return state;
}

static u64 dcbm_first_overdue(const struct dcbm_job *job)
{
	struct dcbm_transfer *transfer;
	u64 first = U64_MAX;
	unsigned int i;

	for (i = 0; i < job->nr; i++)
		for (transfer = job->ch[i]->transfers;
		     transfer < dcbm_transfers_end(job->ch[i]); transfer++)
			if (transfer->busy)
				first = min(first, transfer->overdue);
	return first;
}

/* Groups that were ever complete. Pairs with a release in dcbm_desc_done(). */
static int dcbm_nr_done(const struct dcbm_job *job)
{
	return atomic_read_acquire(&job->done->nr);
}

/*
 * Look at all channels, if one has completed a group since the last look, or is
 * overdue: the calling CPU asks after each chunk that it has copied, and a look
 * at many channels costs a good part of a chunk.
 */
static enum dcbm_state dcbm_poll_all(struct dcbm_job *job)
{
	int nr_done = dcbm_nr_done(job);
	unsigned int i = 0;

	job->now = ktime_get_ns();
	if (nr_done == job->nr_done && job->now <= job->look)
		return job->state;
	job->nr_done = nr_done;
	job->state = DCBM_IDLE;
	while (i < job->nr) {
		enum dcbm_state state = dcbm_poll_channel(job, job->ch[i]);

		if (state & DCBM_GONE) {
			job->ch[i] = job->ch[--job->nr];
			continue;
		}
		job->state |= state;
		i++;
	}
	job->look = job->state & DCBM_QUEUE_FULL ? 0 : dcbm_first_overdue(job);
	return job->state;
}

/* Wait until a group is complete or overdue. */
static void dcbm_wait_for_channels(struct dcbm_job *job)
{
	u64 now = ktime_get_ns(), end = now + DCBM_SPIN_NS;

	while (dcbm_nr_done(job) == job->nr_done && now < end) {
		cpu_relax();
		now = ktime_get_ns();
	}
	if (job->look > now)
		wait_event_hrtimeout(job->done->wait,
				     dcbm_nr_done(job) != job->nr_done,
				     ns_to_ktime(job->look - now + 1));
}

/* Copy a chunk by the calling CPU. Return false if nothing is left. */
static bool dcbm_cpu_step(struct dcbm_job *job)
{
	size_t bytes = ferry_mtcopy_step(job->cpus);

	if (!bytes)
		return false;
	job->cpu_bytes += bytes;
	job->cpu_ns = ktime_get_ns() - job->start - job->other_ns;
	cond_resched();
	return true;
}

/**
 * dcbm_copy_job() - copy a job's batch, and give its channels back
 * @job: the job, with its channels and its CPUs
 *
 * Context: process context, all folios locked. May sleep, for as long as the
 * DOC block says.
 */
void dcbm_copy_job(struct dcbm_job *job)
{
	enum dcbm_state state;
	unsigned int i;

	job->start = ktime_get_ns();
	job->done = &dcbm_done[job->nr ? job->ch[0]->slot : 0];
	job->claims = ferry_mtcopy_start(job->cpus);
	job->other_ns = ktime_get_ns() - job->start;
	for (i = 0; i < job->nr; i++) {
		job->ch[i]->claimed = 0;
		job->ch[i]->may_claim = true;
		job->ch[i]->done_claiming = false;
		job->ch[i]->refused = false;
		job->ch[i]->last_done = 0;
		job->ch[i]->last_bytes = 0;
		job->ch[i]->done_bytes = 0;
		job->ch[i]->done = job->done;
	}
	do {
		state = dcbm_poll_all(job);
		if (dcbm_cpu_copies(job) && dcbm_cpu_step(job))
			continue;
		if (state & DCBM_QUEUE_FULL)
			usleep_range(20, 50);
		else if (state & DCBM_WAITING)
			dcbm_wait_for_channels(job);
	} while (state != DCBM_IDLE ||
		 (dcbm_cpu_copies(job) && ferry_unclaimed(job->claims)));
	ferry_mtcopy_end(job->cpus);
	if (job->cpu_bytes)
		dcbm_learn_cpu(job);
	dcbm_learn_batch(job, ktime_get_ns() - job->start);
	dcbm_give_back(job);
}

/** dcbm_copy_init() - prepare the wait queues */
void dcbm_copy_init(void)
{
	unsigned int i;

	for (i = 0; i < DCBM_MAX_CHANNELS; i++)
		init_waitqueue_head(&dcbm_done[i].wait);
}
