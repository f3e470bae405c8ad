// SPDX-License-Identifier: GPL-2.0
/*
 * Pages that are swapped out and come back by a fault or by swapoff(2).
 *
 * swap_fault: a fault that maps a page of the swap cache writable without a further fault. Reclaim has unmapped the page, but has
 * not yet flushed. That is harmless if the TLB entry refers to the same frame, but not if the page has moved.
 *
 * The page must be exclusive, clean, in the swap cache, and mapped read-only in a writable mapping. So a read swaps it
 * in while the mapping is read-only, and mprotect(2) then finds a migration entry in its place. Reclaim must unmap the
 * page but not free it, so a pipe holds a reference. madvise(2) flushes by itself, so a control group reclaims.
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
#include <sys/swap.h>
#include <sys/uio.h>
#include <unistd.h>

#include "blockdev.h"
#include "folio.h"
#include "sysfs.h"
#include "util.h"
#include "worker.h"

#define SWAP_PAGES 32
#define SWAP_BYTES ((size_t)64 << 20)
#define SMALL_SWAP_BYTES ((size_t)2 << 20)
#define PIPE_BYTES (1 << 20)
#define SWAP_OUT_TRIES 100
#define SLOW_PAGES 4
#define BUSY_NS 1000000
#define PAUSE_NS 200000

static struct swapdev swap;
static struct worker mover, reclaimer, preempter;
static atomic_bool reclaimed;
static atomic_uint pages_written;
static char hierarchy[] = "/tmp/stale_tlb-cgroup-XXXXXX";
static char root_procs[64], group[64], group_procs[96], group_reclaim[96];
static int pipe_ends[2];

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

static void remove_group(void)
{
	rmdir(group);
	umount2(hierarchy, MNT_DETACH);
	rmdir(hierarchy);
}

/* The write fails because reclaim cannot free pages that the pipe references; it unmaps them before it notices. */
static void reclaim(struct fixture *fx)
{
	(void)fx;
	sysfs_write(group_reclaim, "512K swappiness=max");
	atomic_store(&reclaimed, true);
}

/*
 * Slow reclaim down until some pages are written: this thread preempts it on the CPU that they share. It pauses at
 * times, because reclaim may hold a lock that the stores need.
 */
static void slow_reclaim(struct fixture *fx)
{
	struct sched_param fifo = { .sched_priority = 1 };

	(void)fx;
	pthread_setschedparam(pthread_self(), SCHED_FIFO, &fifo);
	while (atomic_load(&pages_written) < SLOW_PAGES && !atomic_load(&reclaimed)) {
		uint64_t until = clock_ns() + BUSY_NS;

		while (clock_ns() < until)
			;
		sleep_ns(PAUSE_NS);
	}
}

static void open_swap(struct fixture *fx, size_t bytes)
{
	const char *missing = swapdev_open(&swap, bytes);

	if (missing)
		test_skip(fx, "%s", missing);
}

static void fixture_setup_swap(struct fixture *fx)
{
	open_swap(fx, SWAP_BYTES);
	if (!make_group()) {
		remove_group();
		swapdev_close(&swap);
		test_skip(fx, "no control group with memory.reclaim (CONFIG_MEMCG)");
	}
	fixture_map_anon(fx, fx->pages);
	worker_start(&mover, fx, fx->cpus[WORKER_CPU], fixture_move);
	worker_start(&reclaimer, fx, fx->cpus[WORKER_CPU], reclaim);
	worker_start(&preempter, fx, fx->cpus[WORKER_CPU], slow_reclaim);
}

static bool swap_out(const struct fixture *fx)
{
	for (int try = 0; try < SWAP_OUT_TRIES; try++) {
		size_t absent = 0;

		madvise(fx->base, fixture_bytes(fx), MADV_PAGEOUT);
		for (size_t i = 0; i < fx->pages; i++)
			absent += fixture_page_absent(fx, i);
		if (absent == fx->pages)
			return true;
		sleep_ns(1000000);
	}
	return false;
}

static void setup_swap_cache(struct fixture *fx)
{
	uint64_t value;

	/* Join the control group only for these pages, so that it is charged for nothing else. */
	mprotect(fx->base, fixture_bytes(fx), PROT_READ | PROT_WRITE);
	madvise(fx->base, fixture_bytes(fx), MADV_DONTNEED);
	if (!sysfs_write(group_procs, "0"))
		test_error(fx, "%s: %s", group_procs, strerror(errno));
	write_pages(fx->base, fx->pages, fx->old);
	if (!sysfs_write(root_procs, "0"))
		test_error(fx, "%s: %s", root_procs, strerror(errno));
	if (!swap_out(fx))
		test_error(fx, "the pages are not swapped out");
	mprotect(fx->base, fixture_bytes(fx), PROT_READ);
	for (size_t i = 0; i < fx->pages; i++)
		guarded_read(fx->base + i * PAGE_BYTES, &value);
	worker_begin_until(&mover, fixture_all_unmapped);
	mprotect(fx->base, fixture_bytes(fx), PROT_READ | PROT_WRITE);
	worker_wait(&mover);
}

static bool take_references(struct fixture *fx)
{
	struct iovec all = { fx->base, fixture_bytes(fx) };

	if (pipe(pipe_ends) || fcntl(pipe_ends[1], F_SETPIPE_SZ, PIPE_BYTES) < 0)
		die(EXIT_FAILED, "pipe: %m");
	return vmsplice(pipe_ends[1], &all, 1, SPLICE_F_NONBLOCK) == (ssize_t)fixture_bytes(fx);
}

static bool any_absent(const struct fixture *fx)
{
	return folio_first_absent(fx->base, fx->pages) < fx->pages;
}

/* Write to each page as soon as it is unmapped. True if there was one. */
static bool write_unmapped(struct fixture *fx)
{
	const struct read_result *result = &fx->reader->results[0];
	bool any = false;

	while (!atomic_load(&reclaimed)) {
		size_t index = folio_first_absent(fx->base, fx->pages);
		uint64_t value = page_word(fx->new, index);
		char *page = fx->base + index * PAGE_BYTES;

		if (index == fx->pages)
			continue;
		*(volatile uint64_t *)page = value;
		reader_sample(fx->reader, page, 1);
		if (result->fault || result->value != value)
			test_stale(fx, "page %zu reads 0x%" PRIx64 " after a store", index, result->value);
		atomic_fetch_add(&pages_written, 1);
		any = true;
	}
	return any;
}

static void run_swap(struct fixture *fx)
{
	bool held, unmapped;

	setup_swap_cache(fx);
	fixture_fill_tlb(fx);
	fixture_move(fx);
	fx->report->deferred += fx->was_deferred;
	held = take_references(fx);
	atomic_store(&reclaimed, false);
	atomic_store(&pages_written, 0);
	worker_begin_until(&reclaimer, any_absent);
	worker_begin_until(&preempter, any_absent);
	unmapped = write_unmapped(fx);
	worker_wait(&reclaimer);
	worker_wait(&preempter);
	close(pipe_ends[0]);
	close(pipe_ends[1]);
	fx->report->triggered += held && unmapped;
}

static void fixture_teardown_swap(struct fixture *fx)
{
	worker_stop(&mover);
	worker_stop(&reclaimer);
	worker_stop(&preempter);
	munmap(fx->base, fixture_bytes(fx));
	remove_group();
	if (!swapdev_close(&swap))
		test_error(fx, "swapoff: %s", strerror(errno));
}

static void fixture_setup_swapoff(struct fixture *fx)
{
	open_swap(fx, SMALL_SWAP_BYTES);
	fixture_map_anon(fx, fx->pages);
}

/* swapoff(2) maps each page again, without a fault of the process. */
static bool trigger_swapoff(struct fixture *fx)
{
	bool absent = swap_out(fx);

	if (swapoff(swap.loop.path) || swapon(swap.loop.path, 0)) {
		test_error(fx, "%s: %s", swap.loop.path, strerror(errno));
		return false;
	}
	return trigger_store(fx) && absent;
}

static void fixture_teardown_swapoff(struct fixture *fx)
{
	munmap(fx->base, fixture_bytes(fx));
	swapdev_close(&swap);
}

const struct test swap_tests[] = {
	{
		.name = "swap_fault", .description = "stores to pages of the swap cache that reclaim has unmapped",
		.machine = true, .pages = SWAP_PAGES, .min_deferred = 10, .min_triggered = 50,
		.fixture_setup = fixture_setup_swap, .run_round = run_swap, .fixture_teardown = fixture_teardown_swap,
	}, {
		.name = "swapoff", .description = "swapoff(2) brings the pages back, then stores",
		.machine = true, .slow = true, .expect = EXPECT_NEW, .min_deferred = 50, .min_triggered = 50,
		.fixture_setup = fixture_setup_swapoff, .setup = setup_forked, .trigger = trigger_swapoff,
		.fixture_teardown = fixture_teardown_swapoff,
	},
	{ 0 }
};
