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
static void count(struct fixture *fx, size_t index)
{
	char *at = fx->base + index * PAGE_BYTES;
	uint64_t found;

	if (!guarded_read(at, &found))
		return;
	if (found != counts[index]) {
		test_stale(fx, "page %zu counts %" PRIu64 ", but was made to count %" PRIu64, index, found,
			  counts[index]);
		counts[index] = found;
	}
	if (guarded_write(at, counts[index] + 1))
		counts[index]++;
}

static void *write_on(void *arg)
{
	struct fixture *fx = arg;

	cpu_pin(fx->cpus[READER_CPU]);
	while (!atomic_load(&stop))
		for (size_t i = 0; i < COUNTERS; i++)
			count(fx, i);
	return NULL;
}

static void fixture_setup_loaded(struct fixture *fx, size_t pages)
{
	ballast = pages;
	fixture_map_anon(fx, PADDING + COUNTERS + ballast);
	fixture_add_padding(fx, PADDING, 0);
	write_pages(fx->base, fx->pages, 1);
	for (size_t i = 0; i < COUNTERS; i++)
		counts[i] = page_word(1, i);
	fx->pages = COUNTERS;
	worker_start(&mover, fx, fx->cpus[WORKER_CPU], fixture_move);
	if (pthread_create(&writer, NULL, write_on, fx))
		die(EXIT_FAILED, "no thread for the writer");
}

static void fixture_setup_fork(struct fixture *fx)
{
	fixture_setup_loaded(fx, BALLAST);
}

static void fixture_setup_toggle(struct fixture *fx)
{
	fixture_setup_loaded(fx, LIGHT_BALLAST);
}

static void fixture_teardown_race(struct fixture *fx)
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

static bool trigger_toggle(struct fixture *fx)
{
	size_t bytes = (COUNTERS + ballast) * PAGE_BYTES;

	return !mprotect(fx->base, bytes, PROT_READ) && !mprotect(fx->base, bytes, PROT_READ | PROT_WRITE);
}

static void fixture_setup_clear(struct fixture *fx)
{
	fixture_setup_loaded(fx, BALLAST);
	if (!folio_soft_dirty(fx->base))
		test_skip(fx, "the kernel does not tell what is written (CONFIG_MEM_SOFT_DIRTY)");
}

static bool trigger_clear(struct fixture *fx)
{
	(void)fx;
	return sysfs_write("/proc/self/clear_refs", SOFT_DIRTY);
}

static void run_race(struct fixture *fx)
{
	bool triggered;

	worker_begin(&mover);
	triggered = fx->test->trigger(fx);
	worker_wait(&mover);
	fx->report->triggered += triggered && (fx->moved || fx->options->off);
	fx->report->deferred += fx->was_deferred;
}

/* Round after round of a write fault, while another thread flips the switch. */
static struct worker flipper;
static atomic_bool flipping;
static _Atomic uint64_t flips;

static void flip(struct fixture *fx)
{
	while (atomic_load(&flipping)) {
		if (!migrc_write("enabled", atomic_load(&flips) & 1 ? "1" : "0")) {
			test_error(fx, "enabled: %s", strerror(errno));
			return;
		}
		atomic_fetch_add(&flips, 1);
		usleep(1000);
	}
}

static void fixture_setup_switch(struct fixture *fx)
{
	if (fx->options->off)
		test_skip(fx, "there is nothing to switch");
	fixture_map_anon(fx, fx->pages);
	atomic_store(&flipping, true);
	worker_start(&flipper, fx, fx->cpus[WORKER_CPU], flip);
	worker_begin(&flipper);
}

static void fixture_teardown_switch(struct fixture *fx)
{
	atomic_store(&flipping, false);
	worker_stop(&flipper);
	migrc_write("enabled", "1");
	if (atomic_load(&flips) < fx->report->rounds)
		test_error(fx, "only %" PRIu64 " flips in %" PRIu64 " rounds", atomic_load(&flips),
			   fx->report->rounds);
}

static void setup_switch(struct fixture *fx)
{
	write_pages(fx->base, fx->pages, fx->old);
	fixture_fork_and_reap(fx);
}

static bool trigger_switch(struct fixture *fx)
{
	write_pages(fx->base, fx->pages, fx->new);
	return true;
}

const struct test lost_write_tests[] = {
	{
		.name = "lost_write", .description = "stores while the pages move and the process forks",
		.min_triggered = 50,
		.fixture_setup = fixture_setup_fork, .fixture_teardown = fixture_teardown_race,
		.run_round = run_race, .trigger = trigger_fork,
	}, {
		.name = "mprotect_race", .description = "stores while the pages move and are write-protected to and fro",
		.min_triggered = 50,
		.fixture_setup = fixture_setup_toggle, .fixture_teardown = fixture_teardown_race,
		.run_round = run_race, .trigger = trigger_toggle,
	}, {
		.name = "soft_dirty", .description = "stores while the pages move and all memory is write-protected, to see what is written",
		.min_triggered = 50,
		.fixture_setup = fixture_setup_clear, .fixture_teardown = fixture_teardown_race,
		.run_round = run_race, .trigger = trigger_clear,
	}, {
		.name = "kill_switch", .description = "write faults while migrc is switched off and on",
		.expect = EXPECT_NEW, .min_deferred = 5, .min_triggered = 50, .in_place = true,
		.fixture_setup = fixture_setup_switch, .fixture_teardown = fixture_teardown_switch,
		.setup = setup_switch, .trigger = trigger_switch,
	},
	{ 0 }
};
