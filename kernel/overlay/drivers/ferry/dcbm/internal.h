/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _FERRY_DCBM_INTERNAL_H
#define _FERRY_DCBM_INTERNAL_H

#include <linux/atomic.h>
#include <linux/bitmap.h>
#include <linux/dma-mapping.h>
#include <linux/dmaengine.h>
#include <linux/ferry.h>
#include <linux/ferry_sysfs.h>
#include <linux/scatterlist.h>
#include <linux/seq_file.h>
#include <linux/sizes.h>

/* Maximum number of channels held; the limit of the channels knob. */
#define DCBM_MAX_CHANNELS	64
/* Segments of one transfer: one channel can copy a batch of single pages. */
#define DCBM_MAX_SEGMENTS	FERRY_BATCH_FOLIOS
/*
 * Longest descriptor: below every known engine's limit, and long enough that
 * its setup cost is small beside the copy.
 */
#define DCBM_MAX_LEN		SZ_1M
/* Longest transfer and size of an IOVA window: the default batch limit. */
#define DCBM_MAX_TRANSFER	((size_t)SZ_32M)
/* Deadline of a batch on slow but live channels, in multiples of timeout_ms. */
#define DCBM_BATCH_TIMEOUTS	4
/* Size of the "devices" knob's value. */
#define DCBM_DEVICES_LEN	(PAGE_SIZE / 4)
/* Watched buses: platform, PCI, AMBA. */
#define DCBM_MAX_BUSES		3

/**
 * enum dcbm_trust - why a driver's completion can be believed
 * @DCBM_TRUST_NONE:		it cannot: the copy is verified
 * @DCBM_TRUST_SENTINEL:	after an error no later descriptor of the same
 *				chain completes, so the completion of a last,
 *				private descriptor covers all; after
 *				synchronize() a group is one chain
 * @DCBM_TRUST_RESULT:		the callback's result reports errors
 */
enum dcbm_trust {
	DCBM_TRUST_NONE,
	DCBM_TRUST_SENTINEL,
	DCBM_TRUST_RESULT,
};

/**
 * struct dcbm_quirks - quirks of a DMA engine driver
 * @driver:	name of the driver; NULL in the row for unlisted drivers
 * @depth:	maximum number of descriptors in flight on one channel
 * @issue_each:	call issue_pending after each submit, not once a group
 * @late_desc_use: the driver may use a descriptor after its callback has
 *		returned, and synchronize() does not wait for that
 * @done_means_idle: completions may be false, but the driver only sends them
 *		when the device has stopped working on the descriptor
 * @trust:	why its completions can be believed
 */
struct dcbm_quirks {
	const char *driver;
	unsigned int depth;
	bool issue_each;
	bool late_desc_use;
	bool done_means_idle;
	enum dcbm_trust trust;
};

/**
 * struct dcbm_desc - one descriptor
 * @ch:		its channel
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
	struct dcbm_channel *ch;
	dma_addr_t src;
	dma_addr_t dst;
	unsigned int len;
	unsigned short first;
	unsigned short nr;
	int status;
	bool in_flight;
};

/**
 * struct dcbm_transfer - the part of a batch that one channel copies
 * @bytes:	its length
 * @nr_segments: number of segments, each within one folio of the batch
 * @nr_descs:	number of descriptors; 0 if the segments could not be mapped
 * @mapped:	both lists are mapped for the channel's device
 * @in_flight:	segments that the device of a hung channel may still write
 * @pair:	of each segment, the pair of the batch
 * @src:	sources of the segments
 * @dst:	destinations of the segments, of the same lengths
 * @descs:	the descriptors
 */
struct dcbm_transfer {
	size_t bytes;
	unsigned int nr_segments;
	unsigned int nr_descs;
	bool mapped;
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
 * @quirks:	quirks of its driver
 * @nid:	node that it is near, or NUMA_NO_NODE
 * @slot:	its index in the table of channels
 * @first:	first descriptor of the group in flight
 * @next:	first descriptor not submitted
 * @end:	end of the descriptors to submit
 * @pending:	outstanding callbacks; one too many after a false completion,
 *		so that it never reaches 0
 * @progress:	jiffies of the last submission or callback
 * @waiting:	a group is in flight
 * @timed_out:	the group in flight has timed out
 * @backoff_until: in jiffies; the channel is not claimed before
 * @hung:	out of service until @pending is 0
 * @unbound:	its driver was unbound from the device
 * @src_put:	segments whose source references hung.c has dropped
 * @list:	entry of hung.c's list
 * @windows:	it has IOVA windows
 * @src_window:	bus addresses for sources
 * @dst_window:	bus addresses for destinations
 * @sentinel:	source and destination of the sentinel descriptor, if
 *		DCBM_TRUST_SENTINEL needs one
 * @sentinel_dma: their bus address
 * @last:	the sentinel descriptor
 * @nr_descs:	descriptors submitted since the channel is held
 * @bytes:	bytes of them
 * @near_bytes:	of those, bytes whose destination is on @nid
 * @transfer:	the current transfer
 *
 * The task that claimed the slot owns all fields. Callbacks only touch
 * @pending, @progress and the status of their descriptor, and nothing after
 * they have decremented @pending.
 */
struct dcbm_channel {
	struct dma_chan *chan;
	const struct device *provider;
	struct device *dev;
	const struct dcbm_quirks *quirks;
	int nid;
	unsigned int slot;
	unsigned int first;
	unsigned int next;
	unsigned int end;
	atomic_t pending;
	unsigned long progress;
	bool waiting;
	bool timed_out;
	unsigned long backoff_until;
	bool hung;
	bool unbound;
	unsigned int src_put;
	struct list_head list;
	bool windows;
	struct dma_iova_state src_window;
	struct dma_iova_state dst_window;
	void *sentinel;
	dma_addr_t sentinel_dma;
	struct dcbm_desc last;
	u64 nr_descs;
	u64 bytes;
	u64 near_bytes;
	struct dcbm_transfer transfer;
};

/**
 * struct dcbm_job - a batch being copied
 * @batch:	the batch
 * @nr:		number of channels claimed for it
 * @ch:		the channels, nearest first
 * @pair:	first pair that is not split into transfers yet
 * @offset:	bytes of that pair that are
 * @start:	in jiffies; when the copy began
 */
struct dcbm_job {
	struct ferry_batch *batch;
	unsigned int nr;
	struct dcbm_channel *ch[DCBM_MAX_CHANNELS];
	unsigned int pair;
	size_t offset;
	unsigned long start;
};

/* When copies are verified, the words of the verify knob. */
enum dcbm_verify {
	DCBM_VERIFY_AUTO,
	DCBM_VERIFY_ALWAYS,
};

/**
 * struct dcbm_tuning - values of the knobs
 * @channels:	maximum number of channels that copy one batch
 * @timeout_ms:	a channel without progress for this long hangs
 * @verify:	an enum dcbm_verify
 * @force_offload: offload batches that the CPU would copy faster, too
 */
struct dcbm_tuning {
	unsigned long channels;
	unsigned long timeout_ms;
	unsigned long verify;
	bool force_offload;
};

/* The counters: descriptors = completed + errors + timeouts. */
#define DCBM_COUNTERS(TYPE, _last) {				\
	TYPE(DCBM_DESCRIPTORS, descriptors)			\
	TYPE(DCBM_COMPLETED, completed)				\
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
	TYPE(DCBM_REJECTED_TAGGED, rejected_tagged)		\
	TYPE(DCBM_CHANNELS_HUNG, channels_hung)			\
	TYPE(DCBM_CHANNELS_RECOVERED, channels_recovered)	\
	TYPE(DCBM_HUNG_PAGES, hung_pages)			\
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
#define DCBM_NR_QUIRKS		8
const struct dcbm_quirks *dcbm_quirks_of(const struct dma_chan *chan);
const struct dcbm_quirks *dcbm_quirks_nth(unsigned int nr);
unsigned int dcbm_quirks_index(const struct dcbm_quirks *quirks);

/* map.c */
void dcbm_windows_alloc(struct dcbm_channel *ch);
void dcbm_windows_free(struct dcbm_channel *ch);
bool dcbm_split(struct dcbm_job *job);
int dcbm_map(struct dcbm_transfer *transfer, struct dcbm_channel *ch);
void dcbm_unmap(struct dcbm_transfer *transfer, struct dcbm_channel *ch,
		unsigned long attrs);

/* channels.c */
extern struct mutex dcbm_mutex;
extern struct wait_queue_head dcbm_wait;
extern unsigned int dcbm_suspend_state;
extern char dcbm_devices[DCBM_DEVICES_LEN];
extern const struct bus_type *const dcbm_buses[DCBM_MAX_BUSES + 1];
void dcbm_unbinding_add(const struct device *dev);
void dcbm_unbinding_del(const struct device *dev);
unsigned int dcbm_request_channels(void);
bool dcbm_have_channels(void);
void dcbm_release_channels(bool all);
bool dcbm_unpublish(struct dcbm_channel *ch);
void dcbm_quirk_delay(const struct dcbm_channel *ch);
void dcbm_channel_free(struct dcbm_channel *ch);
void dcbm_channel_detach(struct dcbm_channel *ch);
void dcbm_channel_return(struct dcbm_channel *ch);
struct dcbm_channel *dcbm_slot(unsigned int slot);
void dcbm_claim(struct dcbm_job *job, unsigned int wanted,
		const struct dcbm_quirks *quirks);
void dcbm_unclaim(struct dcbm_channel *ch);

/* hung.c */
void dcbm_channel_hung(struct dcbm_channel *ch);
bool dcbm_try_recover(struct dcbm_channel *ch);
void dcbm_leak(struct dcbm_channel *ch);
void dcbm_hung_unbound(const struct device *dev);
void dcbm_hung_exit(void);

/* complete.c */
bool dcbm_complete_channel(struct dcbm_job *job, struct dcbm_channel *ch);

/* submit.c */
bool dcbm_deadline_passed(const struct dcbm_job *job);
void dcbm_submit_and_wait(struct dcbm_job *job);

/* copy.c */
void dcbm_keep_nearest(struct dcbm_job *job, unsigned int nr);
void dcbm_copy_job(struct dcbm_job *job);

/* calibrate.c */
void dcbm_calibrate(void);
bool dcbm_worth_offloading(const struct ferry_batch *batch);
unsigned int dcbm_pick_channels(const struct dcbm_job *job);
void dcbm_show_costs(struct seq_file *m);

/* hotplug.c */
int dcbm_acquire_all(void);
void dcbm_release_all(void);
void dcbm_recalibrate(void);
int dcbm_set_devices(const char *names);
ssize_t dcbm_show_devices(char *buf);
int dcbm_notify_init(void);
void dcbm_notify_exit(void);

/* debugfs.c */
void dcbm_debugfs_init(void);
void dcbm_debugfs_exit(void);

#endif /* _FERRY_DCBM_INTERNAL_H */
