/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _FERRY_DCBM_INTERNAL_H
#define _FERRY_DCBM_INTERNAL_H

#include <linux/atomic.h>
#include <linux/bitmap.h>
#include <linux/dma-mapping.h>
#include <linux/dmaengine.h>
#include <linux/ferry.h>
#include <linux/ferry_mtcopy.h>
#include <linux/ferry_sysfs.h>
#include <linux/log2.h>
#include <linux/scatterlist.h>
#include <linux/seq_file.h>
#include <linux/sizes.h>

/* Maximum number of channels held; the limit of the channels knob. */
#define DCBM_MAX_CHANNELS	64
/* Classes. Of numbers of channels: 1, 2, 4 and so on. */
#define DCBM_COUNTS		(ilog2(DCBM_MAX_CHANNELS) + 1)
/* Of folios: below 64 KiB, below 1 MiB, others. */
#define DCBM_FOLIOS		3
/* Rates are forgotten, and choices made again, after so long. */
#define DCBM_AGE		(10 * HZ)
/* Segments of one transfer. */
#define DCBM_MAX_SEGMENTS	FERRY_BATCH_FOLIOS
/*
 * Longest descriptor, unless a driver's quirks have another: within the limit
 * of every known engine.
 */
#define DCBM_MAX_LEN		SZ_1M
/* Longest transfer and size of an IOVA window. */
#define DCBM_MAX_TRANSFER	(DCBM_MAX_SEGMENTS * PAGE_SIZE)
/* Fewer bytes do not repay an interrupt. */
#define DCBM_MIN_TRANSFER	max(SZ_64K, PAGE_SIZE)
/* Transfers of a channel at a time, where its driver has room for them. */
#define DCBM_MAX_TRANSFERS	2
/* Size of the "devices" knob's value. */
#define DCBM_DEVICES_LEN	(PAGE_SIZE / 4)

/**
 * struct dcbm_quirks - quirks of a DMA engine driver
 * @driver:	name of the driver; NULL in the row for unlisted drivers
 * @depth:	maximum number of descriptors in flight on one channel
 * @max_len:	longest descriptor, if not DCBM_MAX_LEN
 * @issue_each:	call issue_pending after each submit, not once a group
 * @release_waits: the driver's release waits for the device, even for ever; it
 *		has a device_release, so the reference may be kept
 * @late_desc_use: the driver may use a descriptor after its callback has
 *		returned, and synchronize() does not wait for that
 * @done_means_idle: completions may be false, but the driver only sends them
 *		when the device has stopped working on the descriptor
 * @aborted_means_idle: the driver only reports DMA_TRANS_ABORTED when the
 *		device has stopped working on the descriptor
 * @reports_errors: its completions can be believed: the callback's result tells
 *		errors. Otherwise the copy is verified
 */
struct dcbm_quirks {
	const char *driver;
	unsigned int depth;
	unsigned int max_len;
	bool issue_each;
	bool release_waits;
	bool late_desc_use;
	bool done_means_idle;
	bool aborted_means_idle;
	bool reports_errors;
};

struct dcbm_transfer;

/**
 * struct dcbm_done - the completed groups of a job
 * @wait:	woken when one is complete
 * @nr:		how often one was
 */
struct dcbm_done {
	struct wait_queue_head wait;
	atomic_t nr;
};

/**
 * struct dcbm_desc - one descriptor
 * @transfer:	its transfer
 * @src:	bus address of the source
 * @dst:	bus address of the destination
 * @len:	bytes
 * @first:	first segment of the transfer that it copies
 * @nr:		number of segments that it copies
 * @status:	-EAGAIN until it is submitted, -EINPROGRESS until it completes,
 *		then 0 or the driver's error
 * @in_flight:	it had not completed when its channel was found hung
 */
struct dcbm_desc {
	struct dcbm_transfer *transfer;
	dma_addr_t src;
	dma_addr_t dst;
	unsigned int len;
	unsigned short first;
	unsigned short nr;
	int status;
	bool in_flight;
};

/**
 * struct dcbm_transfer - a part of a batch that a channel copies
 * @ch:		the channel
 * @busy:	it has a part of a batch, or of one that it hung with
 * @bytes:	its length
 * @nr_segments: number of segments, each within one folio of the batch
 * @nr_descs:	number of descriptors
 * @mapped:	both lists are mapped for the channel's device
 * @windows:	it has IOVA windows
 * @src_window:	bus addresses for sources
 * @dst_window:	bus addresses for destinations
 * @next:	first descriptor not submitted
 * @group_bytes: bytes of the group
 * @pending:	outstanding callbacks of the group
 * @begun:	in ns; when it was claimed
 * @begun_bytes: @done_bytes of the channel at that time
 * @deadline:	in ns; no more of it is submitted then
 * @overdue:	in ns; when its device has had enough time for the group
 * @late:	the group was not complete then
 * @cpu_ns:	time that the CPU has spent on it
 * @src_put:	segments whose source references hung.c has dropped
 * @in_flight:	segments that the device of a hung channel may still write
 * @pair:	of each segment, the pair of the batch
 * @src:	sources of the segments
 * @dst:	destinations of the segments, of the same lengths
 * @descs:	the descriptors
 */
struct dcbm_transfer {
	struct dcbm_channel *ch;
	bool busy;
	size_t bytes;
	unsigned int nr_segments;
	unsigned int nr_descs;
	bool mapped;
	bool windows;
	struct dma_iova_state src_window;
	struct dma_iova_state dst_window;
	unsigned int next;
	size_t group_bytes;
	atomic_t pending;
	u64 begun;
	size_t begun_bytes;
	u64 deadline;
	u64 overdue;
	bool late;
	u64 cpu_ns;
	unsigned int src_put;
	DECLARE_BITMAP(in_flight, DCBM_MAX_SEGMENTS);
	unsigned short pair[DCBM_MAX_SEGMENTS];
	struct scatterlist src[DCBM_MAX_SEGMENTS];
	struct scatterlist dst[DCBM_MAX_SEGMENTS];
	struct dcbm_desc descs[DCBM_MAX_SEGMENTS];
};

/**
 * struct dcbm_channel - a channel that dcbm holds
 * @chan:	the channel; NULL once it was released with memory leaked
 * @provider:	device that the channel's driver is bound to
 * @dev:	device that memory is mapped for, mostly the same
 * @engine:	the provider's entry in rates.c
 * @quirks:	quirks of its driver
 * @nid:	node that it is near, or NUMA_NO_NODE
 * @slot:	its index in the table of channels
 * @done:	for groups of its transfers that are complete
 * @rate:	expected bytes per ms in its job, 0 if unknown
 * @cost:	expected bytes for which the CPU needs a ms, 0 if unknown
 * @claimed:	bytes of its transfers
 * @copies_since: in ns; when its oldest transfer began, or followed another
 * @may_claim:	its job began, or one of its transfers ended, since it was
 *		given some last
 * @done_claiming: it gets no more of its job
 * @refused:	its driver had no room for a descriptor of the job: it has one
 *		transfer at a time from then on
 * @last_done:	in ns; when its last transfer was complete
 * @last_bytes:	@done_bytes at that time
 * @done_bytes:	bytes of its groups that were complete in this job
 * @hung:	out of service until all callbacks have come
 * @lost:	a completion was false: nothing will tell when the device has
 *		stopped
 * @unbinding:	its driver is being unbound from the device
 * @list:	entry of hung.c's list
 * @nr_descs:	descriptors submitted since the channel is held
 * @bytes:	bytes of them
 * @near_bytes:	of those, bytes whose destination is on @nid
 * @nr_transfers: transfers that it can have at a time
 * @transfers:	these
 *
 * The task that claimed the slot owns all fields. Callbacks only touch @pending
 * of their transfer and the status of their descriptor, and nothing of the
 * channel after they have decremented @pending.
 */
struct dcbm_channel {
	struct dma_chan *chan;
	struct device *provider;
	struct device *dev;
	struct dcbm_engine *engine;
	const struct dcbm_quirks *quirks;
	int nid;
	unsigned int slot;
	struct dcbm_done *done;
	unsigned long rate;
	unsigned long cost;
	size_t claimed;
	u64 copies_since;
	bool may_claim;
	bool done_claiming;
	bool refused;
	u64 last_done;
	size_t last_bytes;
	size_t done_bytes;
	bool hung;
	bool lost;
	bool unbinding;
	struct list_head list;
	u64 nr_descs;
	u64 bytes;
	u64 near_bytes;
	unsigned int nr_transfers;
	struct dcbm_transfer transfers[] __counted_by(nr_transfers);
};

static inline const struct dcbm_transfer *
dcbm_transfers_end(const struct dcbm_channel *ch)
{
	return ch->transfers + ch->nr_transfers;
}

struct dcbm_choice;

/* Ways to copy a batch, see choice.c. */
enum dcbm_way {
	DCBM_BY_CPUS,
	DCBM_BY_CHANNELS,
	DCBM_BY_BOTH,
	DCBM_WAYS,
};

/* Bits: the state of a job is that of all its channels. */
enum dcbm_state {
	DCBM_IDLE = 0,
	DCBM_QUEUE_FULL = BIT(0),
	DCBM_WAITING = BIT(1),
	/* The channel does not belong to the job any more. */
	DCBM_GONE = BIT(2),
};

/**
 * struct dcbm_job - a batch being copied
 * @batch:	the batch
 * @cpus:	the CPUs' part in it
 * @claims:	which parts of it are claimed
 * @spares_cpus: CPUs do not help channels that are faster than they are
 * @way:	the way to copy; CPUs always copy the rest in the end
 * @measured:	to measure that way
 * @choice:	rates that the batch is a sample of, or NULL
 * @lost_ns:	time after which channels that are compared have lost, or 0
 * @cpu_rate:	expected bytes per ms of the CPUs, 0 if unknown
 * @cpu_bytes:	bytes that the calling CPU has copied
 * @cpu_ns:	time that it needed for them
 * @other_ns:	time that it has spent on helpers and on transfers
 * @start:	in ns; when the copy began
 * @now:	in ns; when the last look began, or came to the channel
 * @look:	in ns; when they must be looked at, though none has completed a
 *		group
 * @nr_done:	the number in @done at the last look
 * @state:	the result of the last look
 * @done:	its completed groups
 * @nr:		number of channels claimed for it
 * @ch:		the channels
 */
struct dcbm_job {
	struct ferry_batch *batch;
	struct mtcopy_job *cpus;
	struct ferry_claims *claims;
	bool spares_cpus;
	enum dcbm_way way;
	bool measured;
	struct dcbm_choice *choice;
	u64 lost_ns;
	unsigned long cpu_rate;
	size_t cpu_bytes;
	u64 cpu_ns;
	u64 other_ns;
	u64 start;
	u64 now;
	u64 look;
	int nr_done;
	enum dcbm_state state;
	struct dcbm_done *done;
	unsigned int nr;
	struct dcbm_channel *ch[DCBM_MAX_CHANNELS];
};

/* Does the calling CPU copy while channels do? */
static inline bool dcbm_cpu_copies(const struct dcbm_job *job)
{
	return job->way != DCBM_BY_CHANNELS;
}

/* Are the channels of the job known to be slower by now? */
static inline bool dcbm_has_lost(const struct dcbm_job *job)
{
	return job->lost_ns && job->now - job->start > job->lost_ns;
}

/* When copies are verified, the words of the verify knob. */
enum dcbm_verify {
	DCBM_VERIFY_AUTO,
	DCBM_VERIFY_ALWAYS,
};

/**
 * struct dcbm_tuning - values of the knobs
 * @channels:	maximum number of channels that copy one batch
 * @timeout_ms:	timeout of every transfer; 0: from its expected time
 * @verify:	an enum dcbm_verify
 * @force_offload: let channels copy all, whatever was learned of them
 */
struct dcbm_tuning {
	unsigned long channels;
	unsigned long timeout_ms;
	unsigned long verify;
	u32 force_offload;
};

/* While no batch is in flight, descriptors = completed + errors + timeouts. */
#define DCBM_COUNTERS(TYPE, _last) {				\
	TYPE(DCBM_TRANSFERS, transfers)				\
	TYPE(DCBM_DESCRIPTORS, descriptors)			\
	TYPE(DCBM_COMPLETED, completed)				\
	TYPE(DCBM_COPIED_BYTES, copied_bytes)			\
	TYPE(DCBM_ERRORS, errors)				\
	TYPE(DCBM_TIMEOUTS, timeouts)				\
	TYPE(DCBM_LATE_COMPLETIONS, late_completions)		\
	TYPE(DCBM_VERIFY_FAILURES, verify_failures)		\
	TYPE(DCBM_VERIFIED_BYTES, verified_bytes)		\
	TYPE(DCBM_VERIFY_NS, verify_ns)				\
	TYPE(DCBM_MAP_FAILURES, map_failures)			\
	TYPE(DCBM_PREP_FAILURES, prep_failures)			\
	TYPE(DCBM_DEADLINE_EXCEEDED, deadline_exceeded)		\
	TYPE(DCBM_REJECTED_SLOWER, rejected_slower)		\
	TYPE(DCBM_REJECTED_BUSY, rejected_busy)			\
	TYPE(DCBM_REJECTED_NO_CHANNEL, rejected_no_channel)	\
	TYPE(DCBM_REJECTED_RESTING, rejected_resting)		\
	TYPE(DCBM_REJECTED_TAGGED, rejected_tagged)		\
	TYPE(DCBM_CHANNELS_HUNG, channels_hung)			\
	TYPE(DCBM_CHANNELS_RECOVERED, channels_recovered)	\
	TYPE(DCBM_HUNG_PAGES, hung_pages)			\
	TYPE(DCBM_RELEASED_PAGES, released_pages)		\
	TYPE(DCBM_LEAKED_PAGES, leaked_pages)			\
	_last							\
}

enum dcbm_counter DCBM_COUNTERS(FERRY_COUNTER_ID, DCBM_NR_COUNTERS);

extern struct dcbm_tuning dcbm_tuning;
extern atomic64_t dcbm_counters[DCBM_NR_COUNTERS];
extern const struct attribute_group *dcbm_groups[];

static inline void dcbm_count(enum dcbm_counter counter, s64 nr)
{
	atomic64_add(nr, &dcbm_counters[counter]);
}

static inline struct folio *dcbm_src_folio(struct dcbm_transfer *transfer,
					   unsigned int segment)
{
	return page_folio(sg_page(&transfer->src[segment]));
}

static inline struct folio *dcbm_dst_folio(struct dcbm_transfer *transfer,
					   unsigned int segment)
{
	return page_folio(sg_page(&transfer->dst[segment]));
}

/* quirks.c */
const struct dcbm_quirks *dcbm_quirks_of(const struct dma_chan *chan);

/* rates.c */
struct dcbm_engine *dcbm_engine_get(const struct device *provider);
void dcbm_engine_put(struct dcbm_engine *engine);
bool dcbm_engine_rests(struct dcbm_engine *engine);
bool dcbm_engine_is_tried(const struct dcbm_engine *engine);
void dcbm_engine_failed(struct dcbm_engine *engine, const char *why);
void dcbm_learn(const struct dcbm_job *job,
		const struct dcbm_transfer *transfer, size_t done, u64 ns);
void dcbm_learn_cpu(const struct dcbm_job *job);
void dcbm_expect(struct dcbm_job *job);
unsigned long dcbm_channels_rate(const struct dcbm_job *job);
unsigned long dcbm_cpus_rate(const struct dcbm_job *job);
unsigned long dcbm_job_rate(const struct dcbm_job *job);
bool dcbm_is_useful(const struct dcbm_job *job, const struct dcbm_channel *ch);
unsigned int dcbm_folio_class(const struct dcbm_job *job);
void dcbm_average(unsigned long *rate, size_t bytes, u64 ns);
void dcbm_show_engines(struct seq_file *m);
extern const char * const dcbm_folio_names[];

/* choice.c */
void dcbm_choose(struct dcbm_job *job);
void dcbm_learn_batch(const struct dcbm_job *job, u64 ns);
void dcbm_choices_forget(void);
void dcbm_show_choices(struct seq_file *m);
int dcbm_choices_init(void);
void dcbm_choices_exit(void);

/* map.c */
void dcbm_windows_alloc(struct dcbm_transfer *transfer);
void dcbm_windows_free(struct dcbm_transfer *transfer);
bool dcbm_bounces(struct device *dev);
void dcbm_fill(struct dcbm_transfer *transfer, const struct ferry_batch *batch,
	       size_t start, size_t bytes);
int dcbm_map(struct dcbm_transfer *transfer);
void dcbm_unmap(struct dcbm_transfer *transfer, unsigned long attrs);
bool dcbm_unmap_hung(struct dcbm_transfer *transfer);

/* channels.c */
extern struct mutex dcbm_mutex;
extern struct wait_queue_head dcbm_wait;
extern unsigned int dcbm_suspend_state;
extern char dcbm_devices[DCBM_DEVICES_LEN];
void dcbm_request_channels(void);
bool dcbm_have_channels(void);
void dcbm_release_channels(bool all);
bool dcbm_unpublish(struct dcbm_channel *ch);
void dcbm_quirk_delay(const struct dcbm_channel *ch);
void dcbm_channel_free(struct dcbm_channel *ch);
void dcbm_channel_detach(struct dcbm_channel *ch);
void dcbm_channel_return(struct dcbm_channel *ch);
struct dcbm_channel *dcbm_slot(unsigned int slot);
enum dcbm_counter dcbm_claim(struct dcbm_job *job, unsigned int wanted);
void dcbm_unclaim(unsigned int slot);
void dcbm_give_back(struct dcbm_job *job);

/* hung.c */
bool dcbm_all_done(const struct dcbm_channel *ch);
void dcbm_channel_hung(struct dcbm_channel *ch);
bool dcbm_try_recover(struct dcbm_channel *ch);
void dcbm_abandon(struct dcbm_channel *ch);
void dcbm_hung_unbinding(const struct device *provider);
void dcbm_hung_exit(void);

/* complete.c */
void dcbm_spoil(struct dcbm_transfer *transfer);
bool dcbm_complete(struct dcbm_job *job, struct dcbm_transfer *transfer);
void dcbm_complete_hung(struct dcbm_job *job, struct dcbm_channel *ch);

/* submit.c */
bool dcbm_submit_group(struct dcbm_transfer *transfer, u64 limit_ns);

/* copy.c */
void dcbm_copy_job(struct dcbm_job *job);
#if IS_ENABLED(CONFIG_KUNIT)
size_t dcbm_share(const struct dcbm_job *job, const struct dcbm_channel *ch);
#endif
void dcbm_copy_init(void);

/* hotplug.c */
int dcbm_acquire_all(bool need);
void dcbm_release_all(void);
int dcbm_set_devices(const char *names);
int dcbm_notify_init(void);
void dcbm_notify_exit(void);

/* debugfs.c */
void dcbm_debugfs_init(void);
void dcbm_debugfs_exit(void);

#endif /* _FERRY_DCBM_INTERNAL_H */
