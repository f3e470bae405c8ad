// SPDX-License-Identifier: GPL-2.0
/*
 * A fault that maps a page of the swap cache writable at once. Reclaim has unmapped the page and its own flush is yet
 * to come, which is harmless where the TLB shows the same frame, and is not where the page had moved.
 *
 * The page must be exclusive, mapped read-only where it may be written, clean, and in the swap cache: so it was swapped
 * in by a read while nothing could be written there, and mprotect(2) found a migration entry in its place. Reclaim must
 * unmap it and then let it be: so a pipe holds a reference. madvise(2) flushes by itself: so a control group reclaims.
 */
#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "blockdev.h"
#include "folio.h"
#include "sysfs.h"
#include "util.h"
#include "worker.h"

#define SWAP_PAGES 32
#define SWAP_BYTES ((size_t)64 << 20)
#define PIPE_BYTES (1 << 20)
#define OUT_TRIES 100
#define HINDERED 4
#define HINDER_NS 1000000
#define LET_NS 200000
#define BOTH (PROT_READ | PROT_WRITE)

static struct swapdev swap;
static struct worker mover, reclaimer, hinderer;
static atomic_bool reclaimed;
static atomic_uint written;
static char hierarchy[] = "/tmp/litmus-cgroup-XXXXXX";
static char root_procs[64], group[64], group_procs[96], group_reclaim[96];
static int pipe_ends[2];

static size_t bytes_of(const struct bed *bed)
{
	return bed->pages * PAGE_BYTES;
}

static bool make_group(void)
{
	char control[96];

	if (!mkdtemp(hierarchy) || mount("cgroup2", hierarchy, "cgroup2", 0, NULL))
		return false;
	snprintf(root_procs, sizeof(root_procs), "%s/cgroup.procs", hierarchy);
	snprintf(control, sizeof(control), "%s/cgroup.subtree_control", hierarchy);
	snprintf(group, sizeof(group), "%s/litmus", hierarchy);
	snprintf(group_procs, sizeof(group_procs), "%s/cgroup.procs", group);
	snprintf(group_reclaim, sizeof(group_reclaim), "%s/memory.reclaim", group);
	return sysfs_write(control, "+memory") && !mkdir(group, 0700) && !access(group_reclaim, W_OK);
}

static void drop_group(void)
{
	rmdir(group);
	umount2(hierarchy, MNT_DETACH);
	rmdir(hierarchy);
}

/* It fails, as it cannot have what the pipe holds; what counts is what it does on the way. */
static void reclaim(struct bed *bed)
{
	(void)bed;
	sysfs_write(group_reclaim, "512K swappiness=max");
	atomic_store(&reclaimed, true);
}

/* Slows reclaim down until some pages are written: they share a CPU, and this comes first. Reclaim may hold its lock. */
static void hinder(struct bed *bed)
{
	struct sched_param first = { .sched_priority = 1 };

	(void)bed;
	pthread_setschedparam(pthread_self(), SCHED_FIFO, &first);
	while (atomic_load(&written) < HINDERED && !atomic_load(&reclaimed)) {
		uint64_t until = clock_ns() + HINDER_NS;

		while (clock_ns() < until)
			;
		sleep_ns(LET_NS);
	}
}

static void open_swap(struct bed *bed)
{
	const char *missing = swapdev_open(&swap, SWAP_BYTES);

	if (missing)
		bed_skip(bed, "%s", missing);
	if (!make_group()) {
		drop_group();
		swapdev_close(&swap);
		bed_skip(bed, "no control group that reclaims (CONFIG_MEMCG, memory.reclaim)");
	}
	bed_map_anon(bed, bed->pages);
	worker_start(&mover, bed, bed->cpus[1], bed_move);
	worker_start(&reclaimer, bed, bed->cpus[1], reclaim);
	worker_start(&hinderer, bed, bed->cpus[1], hinder);
}

static bool swap_out(const struct bed *bed)
{
	for (int try = 0; try < OUT_TRIES; try++) {
		size_t gone = 0;

		madvise(bed->base, bytes_of(bed), MADV_PAGEOUT);
		for (size_t i = 0; i < bed->pages; i++)
			gone += bed_absent(bed, i);
		if (gone == bed->pages)
			return true;
		sleep_ns(1000000);
	}
	return false;
}

/* The group is charged for this memory alone. */
static void fill_in_group(struct bed *bed)
{
	mprotect(bed->base, bytes_of(bed), BOTH);
	madvise(bed->base, bytes_of(bed), MADV_DONTNEED);
	if (!sysfs_write(group_procs, "0"))
		bed_broken(bed, "%s: %s", group_procs, strerror(errno));
	bed_write(bed->base, bed->pages, bed->old);
	if (!sysfs_write(root_procs, "0"))
		bed_broken(bed, "%s: %s", root_procs, strerror(errno));
}

static void arrange(struct bed *bed)
{
	uint64_t value;

	fill_in_group(bed);
	if (!swap_out(bed))
		bed_broken(bed, "the pages are not swapped out");
	mprotect(bed->base, bytes_of(bed), PROT_READ);
	for (size_t i = 0; i < bed->pages; i++)
		guarded_read(bed->base + i * PAGE_BYTES, &value);
	worker_begin_until(&mover, bed_under_way);
	mprotect(bed->base, bytes_of(bed), BOTH);
	worker_wait(&mover);
}

static bool hold(struct bed *bed)
{
	struct iovec all = { bed->base, bytes_of(bed) };

	if (pipe(pipe_ends) || fcntl(pipe_ends[1], F_SETPIPE_SZ, PIPE_BYTES) < 0)
		die(EXIT_FAILED, "pipe: %m");
	return vmsplice(pipe_ends[1], &all, 1, SPLICE_F_NONBLOCK) == (ssize_t)bytes_of(bed);
}

static void write_one(struct bed *bed, size_t index)
{
	char *at = bed->base + index * PAGE_BYTES;

	*(volatile uint64_t *)at = word(bed->fresh, index);
	reader_look(bed->reader, at, 1);
	if (bed->reader->sights[0].fault || bed->reader->sights[0].value != word(bed->fresh, index))
		bed_stale(bed, "round %" PRIu64 ": page %zu shows 0x%" PRIx64 " after a store", bed->report->rounds,
			  index, bed->reader->sights[0].value);
}

static bool one_absent(const struct bed *bed)
{
	return folio_first_absent(bed->base, bed->pages) < bed->pages;
}

/* Each page that is unmapped, at once: true if there was one. */
static bool write_unmapped(struct bed *bed)
{
	bool any = false;

	while (!atomic_load(&reclaimed)) {
		size_t index = folio_first_absent(bed->base, bed->pages);

		if (index == bed->pages)
			continue;
		write_one(bed, index);
		atomic_fetch_add(&written, 1);
		any = true;
	}
	return any;
}

static void round_swap(struct bed *bed)
{
	bool held, unmapped;

	arrange(bed);
	bed_touch(bed);
	bed_move(bed);
	bed->report->deferred += bed->was_deferred;
	held = hold(bed);
	atomic_store(&reclaimed, false);
	atomic_store(&written, 0);
	worker_begin_until(&reclaimer, one_absent);
	worker_begin_until(&hinderer, one_absent);
	unmapped = write_unmapped(bed);
	worker_wait(&reclaimer);
	worker_wait(&hinderer);
	close(pipe_ends[0]);
	close(pipe_ends[1]);
	bed->report->acted += held && unmapped;
}

static void close_swap(struct bed *bed)
{
	worker_stop(&mover);
	worker_stop(&reclaimer);
	worker_stop(&hinderer);
	munmap(bed->base, bytes_of(bed));
	drop_group();
	if (!swapdev_close(&swap))
		bed_broken(bed, "swapoff: %s", strerror(errno));
}

const struct event swap_events[] = {
	{
		.name = "swap_fault", .what = "a store to a page of the swap cache that reclaim has just unmapped",
		.machine = true,
		.pages = SWAP_PAGES, .deferred = 10, .acted = 50,
		.open = open_swap, .round = round_swap, .close = close_swap,
	},
	{ 0 }
};
