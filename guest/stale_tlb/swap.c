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
static char hierarchy[] = "/tmp/stale_tlb-cgroup-XXXXXX";
static char root_procs[64], group[64], group_procs[96], group_reclaim[96];
static int pipe_ends[2];

static size_t bytes_of(const struct fixture *fx)
{
	return fx->pages * PAGE_BYTES;
}

static bool make_group(void)
{
	char control[96];

	if (!mkdtemp(hierarchy) || mount("cgroup2", hierarchy, "cgroup2", 0, NULL))
		return false;
	snprintf(root_procs, sizeof(root_procs), "%s/cgroup.procs", hierarchy);
	snprintf(control, sizeof(control), "%s/cgroup.subtree_control", hierarchy);
	snprintf(group, sizeof(group), "%s/stale_tlb", hierarchy);
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
static void reclaim(struct fixture *fx)
{
	(void)fx;
	sysfs_write(group_reclaim, "512K swappiness=max");
	atomic_store(&reclaimed, true);
}

/* Slows reclaim down until some pages are written: they share a CPU, and this comes first. Reclaim may hold its lock. */
static void hinder(struct fixture *fx)
{
	struct sched_param first = { .sched_priority = 1 };

	(void)fx;
	pthread_setschedparam(pthread_self(), SCHED_FIFO, &first);
	while (atomic_load(&written) < HINDERED && !atomic_load(&reclaimed)) {
		uint64_t until = clock_ns() + HINDER_NS;

		while (clock_ns() < until)
			;
		sleep_ns(LET_NS);
	}
}

static void fixture_setup_swap(struct fixture *fx)
{
	const char *missing = swapdev_open(&swap, SWAP_BYTES);

	if (missing)
		test_skip(fx, "%s", missing);
	if (!make_group()) {
		drop_group();
		swapdev_close(&swap);
		test_skip(fx, "no control group that reclaims (CONFIG_MEMCG, memory.reclaim)");
	}
	fixture_map_anon(fx, fx->pages);
	worker_start(&mover, fx, fx->cpus[WORKER_CPU], fixture_move);
	worker_start(&reclaimer, fx, fx->cpus[WORKER_CPU], reclaim);
	worker_start(&hinderer, fx, fx->cpus[WORKER_CPU], hinder);
}

static bool swap_out(const struct fixture *fx)
{
	for (int try = 0; try < OUT_TRIES; try++) {
		size_t gone = 0;

		madvise(fx->base, bytes_of(fx), MADV_PAGEOUT);
		for (size_t i = 0; i < fx->pages; i++)
			gone += fixture_page_absent(fx, i);
		if (gone == fx->pages)
			return true;
		sleep_ns(1000000);
	}
	return false;
}

/* The group is charged for this memory alone. */
static void fill_in_group(struct fixture *fx)
{
	mprotect(fx->base, bytes_of(fx), BOTH);
	madvise(fx->base, bytes_of(fx), MADV_DONTNEED);
	if (!sysfs_write(group_procs, "0"))
		test_error(fx, "%s: %s", group_procs, strerror(errno));
	write_pages(fx->base, fx->pages, fx->old);
	if (!sysfs_write(root_procs, "0"))
		test_error(fx, "%s: %s", root_procs, strerror(errno));
}

static void setup_pages(struct fixture *fx)
{
	uint64_t value;

	fill_in_group(fx);
	if (!swap_out(fx))
		test_error(fx, "the pages are not swapped out");
	mprotect(fx->base, bytes_of(fx), PROT_READ);
	for (size_t i = 0; i < fx->pages; i++)
		guarded_read(fx->base + i * PAGE_BYTES, &value);
	worker_begin_until(&mover, fixture_all_unmapped);
	mprotect(fx->base, bytes_of(fx), BOTH);
	worker_wait(&mover);
}

static bool hold(struct fixture *fx)
{
	struct iovec all = { fx->base, bytes_of(fx) };

	if (pipe(pipe_ends) || fcntl(pipe_ends[1], F_SETPIPE_SZ, PIPE_BYTES) < 0)
		die(EXIT_FAILED, "pipe: %m");
	return vmsplice(pipe_ends[1], &all, 1, SPLICE_F_NONBLOCK) == (ssize_t)bytes_of(fx);
}

static void write_one(struct fixture *fx, size_t index)
{
	char *at = fx->base + index * PAGE_BYTES;

	*(volatile uint64_t *)at = page_word(fx->new, index);
	reader_sample(fx->reader, at, 1);
	if (fx->reader->results[0].fault || fx->reader->results[0].value != page_word(fx->new, index))
		test_stale(fx, "round %" PRIu64 ": page %zu shows 0x%" PRIx64 " after a store", fx->report->rounds,
			  index, fx->reader->results[0].value);
}

static bool one_absent(const struct fixture *fx)
{
	return folio_first_absent(fx->base, fx->pages) < fx->pages;
}

/* Each page that is unmapped, at once: true if there was one. */
static bool write_unmapped(struct fixture *fx)
{
	bool any = false;

	while (!atomic_load(&reclaimed)) {
		size_t index = folio_first_absent(fx->base, fx->pages);

		if (index == fx->pages)
			continue;
		write_one(fx, index);
		atomic_fetch_add(&written, 1);
		any = true;
	}
	return any;
}

static void run_swap(struct fixture *fx)
{
	bool held, unmapped;

	setup_pages(fx);
	fixture_fill_tlb(fx);
	fixture_move(fx);
	fx->report->deferred += fx->was_deferred;
	held = hold(fx);
	atomic_store(&reclaimed, false);
	atomic_store(&written, 0);
	worker_begin_until(&reclaimer, one_absent);
	worker_begin_until(&hinderer, one_absent);
	unmapped = write_unmapped(fx);
	worker_wait(&reclaimer);
	worker_wait(&hinderer);
	close(pipe_ends[0]);
	close(pipe_ends[1]);
	fx->report->triggered += held && unmapped;
}

static void fixture_teardown_swap(struct fixture *fx)
{
	worker_stop(&mover);
	worker_stop(&reclaimer);
	worker_stop(&hinderer);
	munmap(fx->base, bytes_of(fx));
	drop_group();
	if (!swapdev_close(&swap))
		test_error(fx, "swapoff: %s", strerror(errno));
}

const struct test swap_tests[] = {
	{
		.name = "swap_fault", .description = "a store to a page of the swap cache that reclaim has just unmapped",
		.machine = true, .pages = SWAP_PAGES, .min_deferred = 10, .min_triggered = 50,
		.fixture_setup = fixture_setup_swap, .run_round = run_swap, .fixture_teardown = fixture_teardown_swap,
	},
	{ 0 }
};
