// SPDX-License-Identifier: GPL-2.0
/*
 * Stores that must survive. A thread counts in each of many pages while they move, and while someone write-protects
 * them: until that one's flush a CPU may still write by its TLB, so a page that looks read-only may not be copied yet.
 */
#include "fixture.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "folio.h"
#include "sysfs.h"
#include "util.h"
#include "worker.h"

/* Few: with one page in the batch that is still writable, the flush for it would do for all. */
#define COUNTERS 8
/*
 * Before the counters in a move: fork and mprotect(2) wait until the move has found all its pages, and must come to the
 * counters before the move does.
 */
#define PADDING 384
/* Behind the counters: write-protecting so much takes time, and the flush comes at its end. */
#define BALLAST 8192
/* mprotect(2) flushes what migrc owes at each page table; this is some of them. */
#define LIGHT_BALLAST 1536

/* Of clear_refs: see Documentation/filesystems/proc.rst. */
#define SOFT_DIRTY "4"

static struct worker mover;
static pthread_t writer;
static atomic_bool stop;
static uint64_t counts[COUNTERS];
static size_t ballast;

/* One store to one page, after the last one to it was found again. A fault is no harm: it is tried again. */
static void count(struct bed *bed, size_t index)
{
	char *at = bed->base + index * PAGE_BYTES;
	uint64_t found;

	if (!guarded_read(at, &found))
		return;
	if (found != counts[index]) {
		bed_stale(bed, "page %zu counts %" PRIu64 ", but was made to count %" PRIu64, index, found,
			  counts[index]);
		counts[index] = found;
	}
	if (guarded_write(at, counts[index] + 1))
		counts[index]++;
}

static void *write_on(void *arg)
{
	struct bed *bed = arg;

	cpu_pin(bed->cpus[3]);
	while (!atomic_load(&stop))
		for (size_t i = 0; i < COUNTERS; i++)
			count(bed, i);
	return NULL;
}

static void open_loaded(struct bed *bed, size_t pages)
{
	ballast = pages;
	bed_map_anon(bed, PADDING + COUNTERS + ballast);
	bed_pad(bed, PADDING, 0);
	bed_write(bed->base, bed->pages, 1);
	for (size_t i = 0; i < COUNTERS; i++)
		counts[i] = word(1, i);
	bed->pages = COUNTERS;
	worker_start(&mover, bed, bed->cpus[1], bed_move);
	if (pthread_create(&writer, NULL, write_on, bed))
		die(EXIT_FAILED, "no thread for the writer");
}

static void open_fork(struct bed *bed)
{
	open_loaded(bed, BALLAST);
}

static void open_toggle(struct bed *bed)
{
	open_loaded(bed, LIGHT_BALLAST);
}

static void close_race(struct bed *bed)
{
	atomic_store(&stop, true);
	pthread_join(writer, NULL);
	worker_stop(&mover);
	if (counts[0] == word(1, 0))
		bed_broken(bed, "the writer never wrote");
}

static bool act_fork(struct bed *bed)
{
	bed_fork_once(bed);
	return true;
}

static bool act_toggle(struct bed *bed)
{
	size_t bytes = (COUNTERS + ballast) * PAGE_BYTES;

	return !mprotect(bed->base, bytes, PROT_READ) && !mprotect(bed->base, bytes, PROT_READ | PROT_WRITE);
}

static void open_clear(struct bed *bed)
{
	open_loaded(bed, BALLAST);
	if (!folio_soft_dirty(bed->base))
		bed_skip(bed, "the kernel does not tell what is written (CONFIG_MEM_SOFT_DIRTY)");
}

static bool act_clear(struct bed *bed)
{
	(void)bed;
	return sysfs_write("/proc/self/clear_refs", SOFT_DIRTY);
}

static void round_race(struct bed *bed)
{
	bool acted;

	worker_begin(&mover);
	acted = bed->event->act(bed);
	worker_wait(&mover);
	bed->report->acted += acted && (bed->moved || bed->options->off);
	bed->report->deferred += bed->was_deferred;
}

/* Round after round of a write fault, while another thread flips the switch. */
static struct worker flipper;
static atomic_bool flipping;
static _Atomic uint64_t flips;

static void flip(struct bed *bed)
{
	while (atomic_load(&flipping)) {
		if (!migrc_write("enabled", atomic_load(&flips) & 1 ? "1" : "0")) {
			bed_broken(bed, "enabled: %s", strerror(errno));
			return;
		}
		atomic_fetch_add(&flips, 1);
		usleep(1000);
	}
}

static void open_switch(struct bed *bed)
{
	if (bed->options->off)
		bed_skip(bed, "there is nothing to switch");
	bed_map_anon(bed, bed->pages);
	atomic_store(&flipping, true);
	worker_start(&flipper, bed, bed->cpus[1], flip);
	worker_begin(&flipper);
}

static void close_switch(struct bed *bed)
{
	atomic_store(&flipping, false);
	worker_stop(&flipper);
	migrc_write("enabled", "1");
	if (atomic_load(&flips) < bed->report->rounds)
		bed_broken(bed, "only %" PRIu64 " flips in %" PRIu64 " rounds", atomic_load(&flips),
			   bed->report->rounds);
}

static void arrange_switch(struct bed *bed)
{
	bed_write(bed->base, bed->pages, bed->old);
	bed_fork_once(bed);
}

static bool act_switch(struct bed *bed)
{
	bed_write(bed->base, bed->pages, bed->fresh);
	return true;
}

const struct event race_events[] = {
	{
		.name = "lost_write", .what = "stores while the pages move and the process forks",
		.acted = 50, .open = open_fork, .round = round_race, .act = act_fork, .close = close_race,
	}, {
		.name = "mprotect_race", .what = "stores while the pages move and are write-protected to and fro",
		.acted = 50, .open = open_toggle, .round = round_race, .act = act_toggle, .close = close_race,
	}, {
		.name = "soft_dirty", .what = "stores while the pages move and all memory is write-protected, to see what is written",
		.acted = 50, .open = open_clear, .round = round_race, .act = act_clear, .close = close_race,
	}, {
		.name = "kill_switch", .what = "write faults while migrc is switched off and on",
		.sees = SEES_NEW, .deferred = 5, .acted = 50, .in_place = true,
		.open = open_switch, .arrange = arrange_switch, .act = act_switch, .close = close_switch,
	},
	{ 0 }
};
