// SPDX-License-Identifier: GPL-2.0
/*
 * Stores that must not be lost. A thread increments a counter in each of several pages while they move and while the
 * main thread write-protects them. Until the flush of that write protection a CPU may still write through its TLB
 * entry, so the kernel must not yet copy a page although its PTE is read-only.
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

/* Only a few, because the flush for one page of the batch that is still writable would flush all of them. */
#define COUNTERS 8
/*
 * The padding precedes the counters in a move. fork() and mprotect(2) wait until the move has isolated all its pages,
 * and must reach the counters before the move does.
 */
#define PADDING 384
/* Writable pages behind the counters: write-protecting them takes time, and the flush comes only after it. */
#define EXTRA_PAGES 8192
/* Fewer of them for mprotect(2), which does a pending deferred flush at each page table: these span a few. */
#define MPROTECT_EXTRA_PAGES 1536

/* A value for clear_refs, see Documentation/filesystems/proc.rst. */
#define SOFT_DIRTY "4"

static struct worker mover;
static pthread_t writer;
static atomic_bool stop;
static uint64_t counts[COUNTERS];
static size_t extra_pages;

/* Check that the last store to a page was not lost, then do the next one. If it faults, a later call retries it. */
static void increment(struct fixture *fx, size_t index)
{
	char *at = fx->base + index * PAGE_BYTES;
	uint64_t found;

	if (!guarded_read(at, &found))
		return;
	if (found != counts[index]) {
		test_stale(fx, "page %zu holds %" PRIu64 ", but the last store was %" PRIu64, index, found,
			   counts[index]);
		counts[index] = found;
	}
	if (guarded_write(at, counts[index] + 1))
		counts[index]++;
}

static void *writer_main(void *arg)
{
	struct fixture *fx = arg;

	cpu_pin(fx->cpus[READER_CPU]);
	while (!atomic_load(&stop))
		for (size_t i = 0; i < COUNTERS; i++)
			increment(fx, i);
	return NULL;
}

static void setup_writer(struct fixture *fx, size_t pages)
{
	extra_pages = pages;
	fixture_map_anon(fx, PADDING + COUNTERS + extra_pages);
	fixture_add_padding(fx, PADDING, 0);
	write_pages(fx->base, fx->pages, 1);
	for (size_t i = 0; i < COUNTERS; i++)
		counts[i] = page_word(1, i);
	fx->pages = COUNTERS;
	worker_start(&mover, fx, fx->cpus[WORKER_CPU], fixture_move);
	if (pthread_create(&writer, NULL, writer_main, fx))
		die(EXIT_FAILED, "no thread for the writer");
}

static void fixture_setup_fork(struct fixture *fx)
{
	setup_writer(fx, EXTRA_PAGES);
}

static void fixture_setup_mprotect(struct fixture *fx)
{
	setup_writer(fx, MPROTECT_EXTRA_PAGES);
}

static void fixture_teardown_writer(struct fixture *fx)
{
	atomic_store(&stop, true);
	pthread_join(writer, NULL);
	worker_stop(&mover);
	if (counts[0] == page_word(1, 0))
		test_error(fx, "the writer never wrote");
}

static bool trigger_fork(struct fixture *fx)
{
	fixture_fork_and_reap(fx);
	return true;
}

static bool trigger_mprotect(struct fixture *fx)
{
	size_t bytes = (COUNTERS + extra_pages) * PAGE_BYTES;

	return !mprotect(fx->base, bytes, PROT_READ) && !mprotect(fx->base, bytes, PROT_READ | PROT_WRITE);
}

static void fixture_setup_soft_dirty(struct fixture *fx)
{
	setup_writer(fx, EXTRA_PAGES);
	if (!folio_soft_dirty(fx->base))
		test_skip(fx, "the kernel does not track soft-dirty pages (CONFIG_MEM_SOFT_DIRTY)");
}

static bool trigger_soft_dirty(struct fixture *fx)
{
	(void)fx;
	return sysfs_write("/proc/self/clear_refs", SOFT_DIRTY);
}

static void run_writer(struct fixture *fx)
{
	bool triggered, moved;

	worker_begin(&mover);
	triggered = fx->test->trigger(fx);
	worker_wait(&mover);
	/* The pages around the counters move, too. */
	moved = fx->moved > fx->padding_before + fx->padding_after;
	fx->report->triggered += triggered && (moved || fx->options->off);
	fx->report->deferred += fx->was_deferred;
}

/* kill_switch: write faults while another thread switches migrc off and on. */
static struct worker switcher;
static atomic_bool switching;
static _Atomic uint64_t switches;

static void switch_migrc(struct fixture *fx)
{
	while (atomic_load(&switching)) {
		if (!migrc_write("enabled", atomic_load(&switches) & 1 ? "1" : "0")) {
			test_error(fx, "enabled: %s", strerror(errno));
			return;
		}
		atomic_fetch_add(&switches, 1);
		usleep(1000);
	}
}

static void fixture_setup_switch(struct fixture *fx)
{
	if (fx->options->off)
		test_skip(fx, "--off leaves nothing to switch");
	fixture_map_anon(fx, fx->pages);
	atomic_store(&switching, true);
	worker_start(&switcher, fx, fx->cpus[WORKER_CPU], switch_migrc);
	worker_begin(&switcher);
}

static void fixture_teardown_switch(struct fixture *fx)
{
	atomic_store(&switching, false);
	worker_stop(&switcher);
	migrc_write("enabled", "1");
	if (atomic_load(&switches) < fx->report->rounds)
		test_error(fx, "only %" PRIu64 " switches in %" PRIu64 " rounds", atomic_load(&switches),
			   fx->report->rounds);
}

const struct test lost_write_tests[] = {
	{
		.name = "lost_write", .description = "stores while the pages move and fork() write-protects them",
		.min_triggered = 50,
		.fixture_setup = fixture_setup_fork, .fixture_teardown = fixture_teardown_writer,
		.run_round = run_writer, .trigger = trigger_fork,
	}, {
		.name = "mprotect_race", .description = "stores while the pages move and mprotect(2) toggles writes",
		.min_triggered = 50,
		.fixture_setup = fixture_setup_mprotect, .fixture_teardown = fixture_teardown_writer,
		.run_round = run_writer, .trigger = trigger_mprotect,
	}, {
		.name = "soft_dirty", .description = "stores while the pages move and clear_refs write-protects them",
		.min_triggered = 50,
		.fixture_setup = fixture_setup_soft_dirty, .fixture_teardown = fixture_teardown_writer,
		.run_round = run_writer, .trigger = trigger_soft_dirty,
	}, {
		.name = "kill_switch", .description = "write faults while migrc is switched off and on",
		.expect = EXPECT_NEW, .min_deferred = 5, .min_triggered = 50, .in_place = true,
		.fixture_setup = fixture_setup_switch, .fixture_teardown = fixture_teardown_switch,
		.setup = setup_forked, .trigger = trigger_store,
	},
	{ 0 }
};
