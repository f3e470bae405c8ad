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

/* The most channels held; the limit of the channels knob. */
#define DCBM_MAX_CHANNELS	64
/* Pieces of one share: a batch of single pages fits one channel. */
#define DCBM_MAX_PIECES		FERRY_BATCH_FOLIOS
/* Longest descriptor: below every known engine's limit, long enough to hide its own cost. */
#define DCBM_MAX_LEN		SZ_1M
/* Longest share, and so the size of a window: what a batch has at most by default. */
#define DCBM_MAX_SHARE		((size_t)SZ_32M)
/* In timeouts: how long a batch may take that is slow but alive. */
#define DCBM_BATCH_TIMEOUTS	4

/**
 * enum dcbm_proof - why a driver's word that a copy is complete may be believed
 * @DCBM_PROOF_COMPARE:		it may not: the content is compared
 * @DCBM_PROOF_SENTINEL:	after an error nothing later in the same chain completes, so
 *				the completion of a last, private descriptor vouches for all;
 *				after synchronize() a group is one chain
 * @DCBM_PROOF_RESULT:		it reports errors in the result of the callback
 */
enum dcbm_proof {
	DCBM_PROOF_COMPARE,
	DCBM_PROOF_SENTINEL,
	DCBM_PROOF_RESULT,
};

/**
 * struct dcbm_engine - what must be known of a driver
 * @driver:	its name; NULL for those not known
 * @depth:	descriptors that may be in flight on one channel
 * @issue_each:	call issue_pending after each submit, not once a group
 * @lingers:	it may still use a descriptor when its callback has returned, where
 *		synchronize() does not wait for it
 * @ends:	its completions may be false, but come only when the device has ended
 * @proof:	whether its completions can be believed
 */
struct dcbm_engine {
	const char *driver;
	unsigned int depth;
	bool issue_each;
	bool lingers;
	bool ends;
	enum dcbm_proof proof;
};

/**
 * struct dcbm_desc - one descriptor
 * @ch:		its channel
 * @src:	bus address of the source
 * @dst:	bus address of the destination
 * @len:	bytes
 * @first:	first piece of the share that it copies
 * @nr:		pieces that it copies
 * @status:	-EAGAIN until it is submitted, -EINPROGRESS until it completes, then 0 or
 *		the driver's error
 * @kept:	in flight on a channel that is stuck: the folios are held, see hung.c
 */
struct dcbm_desc {
	struct dcbm_channel *ch;
	dma_addr_t src;
	dma_addr_t dst;
	unsigned int len;
	unsigned short first;
	unsigned short nr;
	int status;
	bool kept;
};

/**
 * struct dcbm_share - the part of a batch that one channel copies
 * @bytes:	its length
 * @nr_pieces:	stretches of memory, each within one folio of the batch
 * @nr_descs:	descriptors for them; 0 if they could not be mapped
 * @mapped:	both lists are mapped for the channel's device
 * @kept:	pieces that the device may still write while the channel is retired
 * @pair:	of each piece, the pair of the batch
 * @src:	sources of the pieces
 * @dst:	destinations of the pieces, of the same lengths
 * @descs:	the descriptors
 */
struct dcbm_share {
	size_t bytes;
	unsigned int nr_pieces;
	unsigned int nr_descs;
	bool mapped;
	DECLARE_BITMAP(kept, DCBM_MAX_PIECES);
	unsigned short pair[DCBM_MAX_PIECES];
	struct scatterlist src[DCBM_MAX_PIECES];
	struct scatterlist dst[DCBM_MAX_PIECES];
	struct dcbm_desc descs[DCBM_MAX_PIECES];
};

/**
 * struct dcbm_channel - a channel that is held
 * @chan:	the channel
 * @provider:	device that its driver is bound to
 * @dev:	device that memory is mapped for, mostly the same
 * @engine:	what is known of its driver
 * @nid:	node it is near, or NUMA_NO_NODE
 * @slot:	its place among those held
 * @first:	first descriptor of the group in flight
 * @next:	first descriptor not submitted
 * @end:		first descriptor not to submit
 * @pending:	callbacks to come, and one that never does where a completion was false
 * @progress:	jiffies of the last submission or callback
 * @waiting:	a group is in flight
 * @stuck:	the group in flight has timed out
 * @rest_until:	in jiffies; it took no descriptor for a while, and is not tried before
 * @retired:	out of service until @pending is 0
 * @unbound:	its driver has left the device
 * @src_put:	pieces whose sources the quarantine has let go
 * @list:	entry of a list of the quarantine
 * @windows:	it has windows
 * @src_window:	bus addresses for sources
 * @dst_window:	bus addresses for destinations
 * @sentinel:	two cache lines' worth for a private descriptor, when the proof needs it
 * @sentinel_dma: their bus address
 * @last:	that descriptor
 * @nr_descs:	descriptors submitted since the channel is held
 * @bytes:	bytes of them
 * @near_bytes:	of those, bytes whose destination it is near
 * @share:	what it copies now
 *
 * Owned by whoever has claimed its slot; callbacks touch @pending, @progress and the status
 * of their descriptor only, and nothing once they have lowered @pending.
 */
struct dcbm_channel {
	struct dma_chan *chan;
	const struct device *provider;
	struct device *dev;
	const struct dcbm_engine *engine;
	int nid;
	unsigned int slot;
	unsigned int first;
	unsigned int next;
	unsigned int end;
	atomic_t pending;
	unsigned long progress;
	bool waiting;
	bool stuck;
	unsigned long rest_until;
	bool retired;
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
	struct dcbm_share share;
};

/**
 * struct dcbm_run - a batch being copied
 * @batch:	the batch
 * @nr:		channels claimed for it
 * @ch:		the channels, nearest first
 * @pair:	first pair that is not cut into shares yet
 * @offset:	bytes of it that are
 * @start:	in jiffies; when the copying began
 */
struct dcbm_run {
	struct ferry_batch *batch;
	unsigned int nr;
	struct dcbm_channel *ch[DCBM_MAX_CHANNELS];
	unsigned int pair;
	size_t offset;
	unsigned long start;
};

/* What is verified, the words of the verify knob. */
enum dcbm_verify {
	DCBM_VERIFY_AUTO,
	DCBM_VERIFY_ALWAYS,
};

/**
 * struct dcbm_tuning - what the knobs set
 * @channels:	the most that copy one batch
 * @timeout_ms:	without progress for so long a channel is stuck
 * @verify:	an enum dcbm_verify: whether content is compared
 * @force_offload: offload even what the CPU would copy faster
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
extern struct wait_queue_head dcbm_wait;

static inline void dcbm_count(enum dcbm_counter counter, s64 nr)
{
	atomic64_add(nr, &dcbm_counters[counter]);
}

/* The folios that a piece lies in. */
static inline struct folio *dcbm_piece_src(struct dcbm_share *share, unsigned int piece)
{
	return page_folio(sg_page(&share->src[piece]));
}

static inline struct folio *dcbm_piece_dst(struct dcbm_share *share, unsigned int piece)
{
	return page_folio(sg_page(&share->dst[piece]));
}

/* main.c */
void dcbm_copy_with(struct dcbm_run *run);

/* quirks.c */
const struct dcbm_engine *dcbm_engine(const struct dma_chan *chan);
const struct dcbm_engine *dcbm_engine_nth(unsigned int nr);
unsigned int dcbm_engine_number(const struct dcbm_engine *engine);
#define DCBM_NR_ENGINES		8

/* channels.c */
extern struct mutex dcbm_mutex;
int dcbm_hold(void);
void dcbm_give_back(void);
void dcbm_refresh(void);
void dcbm_evict_from(const struct device *dev);
void dcbm_evict_all(void);
void dcbm_recalibrate(void);
void dcbm_release_all(void);
int dcbm_set_devices(const char *names);
ssize_t dcbm_show_devices(char *buf);
void dcbm_claim(struct dcbm_run *run, unsigned int wanted,
		const struct dcbm_engine *engine);
void dcbm_unclaim(struct dcbm_channel *ch);
struct dcbm_channel *dcbm_slot(unsigned int slot);
void dcbm_return(struct dcbm_channel *ch);

/* hotplug.c */
bool dcbm_asleep(void);
bool dcbm_stays(const struct dma_device *device);
int dcbm_notify_init(void);
void dcbm_notify_exit(void);

/* share.c */
bool dcbm_cut(struct dcbm_run *run);

/* map.c */
void dcbm_windows_alloc(struct dcbm_channel *ch);
void dcbm_windows_free(struct dcbm_channel *ch);
int dcbm_map(struct dcbm_share *share, struct dcbm_channel *ch);
void dcbm_unmap(struct dcbm_share *share, struct dcbm_channel *ch, unsigned long attrs);

/* submit.c */
bool dcbm_overdue(const struct dcbm_run *run);
void dcbm_drive(struct dcbm_run *run);

/* complete.c */
bool dcbm_settle(struct dcbm_run *run, struct dcbm_channel *ch);

/* verify.c */
bool dcbm_same(struct dcbm_share *share, const struct dcbm_desc *desc);

/* hung.c */
void dcbm_retire(struct dcbm_channel *ch);
bool dcbm_recall(struct dcbm_channel *ch);
void dcbm_abandon(struct dcbm_channel *ch);
void dcbm_unbound(const struct device *dev);
void dcbm_quarantine_exit(void);

/* calibrate.c */
void dcbm_calibrate(void);
bool dcbm_may_pay(const struct ferry_batch *batch);
unsigned int dcbm_choose(const struct dcbm_run *run);
void dcbm_show_costs(struct seq_file *m);

/* debugfs.c */
void dcbm_debugfs_init(void);
void dcbm_debugfs_exit(void);

#endif /* _FERRY_DCBM_INTERNAL_H */
