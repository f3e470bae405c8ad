// SPDX-License-Identifier: GPL-2.0

#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "file.h"
#include "fixture.h"
#include "folio.h"
#include "migration.h"
#include "sysfs.h"
#include "util.h"

#define FOLIO_BYTES ((size_t)64 * 1024)
#define FOLIO_PAGES (FOLIO_BYTES / PAGE_BYTES)
#define FILL_BYTES ((size_t)8 << 20)
#define PATTERN UINT64_C(0x5555555555555555)

enum cmd { TOUCH = 1, WRITE, CHECK_NEW, EXIT, EXEC };

static struct channel {
	_Atomic int asked, done;	/* enum cmd */
	_Atomic uint64_t wrong;		/* pages that were not as they had to be */
} *channel;
static pid_t child;

static uint64_t count_wrong(const struct fixture *fx, uint64_t value)
{
	uint64_t wrong = 0, found;

	for (size_t i = 0; i < fx->pages; i++)
		wrong += !guarded_read(fx->base + i * PAGE_BYTES, &found) || found != page_word(value, i);
	return wrong;
}

static void handle_cmd(struct fixture *fx, enum cmd cmd)
{
	switch (cmd) {
	case TOUCH: atomic_store(&channel->wrong, count_wrong(fx, fx->old)); break;
	case WRITE: write_pages(fx->base, fx->pages, fx->new); break;
	case CHECK_NEW: atomic_store(&channel->wrong, count_wrong(fx, fx->new)); break;
	case EXIT: _exit(0);
	case EXEC:
		execl("/proc/self/exe", "stale_tlb", "--" EXIT_OPTION, (char *)NULL);
		_exit(1);
	}
}

static _Noreturn void child_main(struct fixture *fx, int cpu)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	cpu_pin(cpu);
	for (;;) {
		int cmd = atomic_load(&channel->asked);

		if (!cmd)
			continue;
		handle_cmd(fx, cmd);
		atomic_store(&channel->asked, 0);
		atomic_store(&channel->done, cmd);
	}
}

static void send_cmd(enum cmd cmd)
{
	atomic_store(&channel->done, 0);
	atomic_store(&channel->asked, cmd);
	while (cmd < EXIT && !atomic_load(&channel->done))
		sched_yield();
}

static void open_channel(struct fixture *fx)
{
	if (fx->cpu_count < 3 && !fx->options->off)
		test_skip(fx, "needs three CPUs");
	channel = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (channel == MAP_FAILED)
		die(EXIT_FAILED, "no shared memory: %m");
}

static void start_child(struct fixture *fx, int cpu)
{
	atomic_store(&channel->asked, 0);
	child = fork();
	if (!child)
		child_main(fx, cpu);
	if (child < 0)
		die(EXIT_FAILED, "fork: %m");
	send_cmd(TOUCH);
	if (atomic_load(&channel->wrong))
		test_error(fx, "the child does not see what the parent wrote");
}

static void end_child(struct fixture *fx, enum cmd how)
{
	send_cmd(how);
	if (reap_child(child))
		test_error(fx, "the child did not %s", how == EXEC ? "exec" : "exit");
}

static void fixture_setup_fork(struct fixture *fx)
{
	open_channel(fx);
	fixture_map_anon(fx, fx->pages);
}

static void setup_fork(struct fixture *fx)
{
	write_pages(fx->base, fx->pages, fx->old);
	start_child(fx, fx->cpus[CHILD_CPU]);
}

/* The child writes its copy, goes, and the parent writes what has become its own. */
static bool trigger_fork(struct fixture *fx)
{
	send_cmd(WRITE);
	fixture_check(fx, EXPECT_OLD);
	send_cmd(CHECK_NEW);
	if (atomic_load(&channel->wrong))
		test_stale(fx, "%" PRIu64 " pages of the child are not what it wrote", atomic_load(&channel->wrong));
	end_child(fx, EXIT);
	write_pages(fx->base, fx->pages, fx->new);
	return true;
}

static void fixture_setup_shared(struct fixture *fx)
{
	open_channel(fx);
	file_fixture_setup(fx);
}

static void setup_shared(struct fixture *fx)
{
	file_setup(fx);
	start_child(fx, fx->cpus[CHILD_CPU]);
}

static bool trigger_leave(struct fixture *fx)
{
	end_child(fx, fixture_random(fx, 2) ? EXEC : EXIT);
	fixture_check(fx, EXPECT_OLD);
	return file_write(fx, fx->new);
}

/*
 * A folio that one process maps writable and another one read-only: half of it is not for the child. Who flushes at
 * once for the first must do so for the second, which runs where the first never does: then the frames are free.
 */
static char *folio;
static uint64_t left;	/* frame that the folio was in */

static void map_folio(struct fixture *fx)
{
	if (mmap(folio, FOLIO_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
	    MAP_FAILED)
		die(EXIT_FAILED, "no memory: %m");
	madvise(folio, FOLIO_BYTES, MADV_HUGEPAGE);
	write_pages(folio, FOLIO_PAGES, fx->old);
	if (folio_census(folio, FOLIO_BYTES, FOLIO_BYTES).exact != 1)
		test_error(fx, "this is no folio of 64 KiB");
	left = folio_frame(folio);
}

static void fixture_setup_mixed(struct fixture *fx)
{
	open_channel(fx);
	if (!thp_allow_only(FOLIO_BYTES, false))
		test_skip(fx, "no folios of 64 KiB (CONFIG_TRANSPARENT_HUGEPAGE)");
	folio = folio_reserve(FOLIO_ALIGN);
	fx->step = FOLIO_BYTES;
}

/*
 * What the bed is for the parent, who moves it, or for the child, who reads its first half: what comes
 * first is what is deferred before the writable rest shows that it should not have been.
 */
static void aim(struct fixture *fx, bool child)
{
	fx->base = folio;
	fx->pages = child ? FOLIO_PAGES / 2 : FOLIO_PAGES;
}

static bool overlaps(const char *memory, size_t bytes)
{
	for (size_t at = 0; at < bytes; at += PAGE_BYTES)
		if (folio_frame(memory + at) - left < FOLIO_PAGES)
			return true;
	return false;
}

/* Take folios of the node that it was on until its frames are among them, and fill them. */
static void take_frames(int node)
{
	char *memory = mmap(NULL, FILL_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool met = false;

	if (memory == MAP_FAILED)
		die(EXIT_FAILED, "no memory: %m");
	madvise(memory, FILL_BYTES, MADV_HUGEPAGE);
	node_bind(memory, FILL_BYTES, node);
	for (size_t at = 0; at < FILL_BYTES && !met; at += FOLIO_BYTES) {
		for (size_t i = 0; i < FOLIO_BYTES; i += sizeof(uint64_t))
			*(volatile uint64_t *)(memory + at + i) = PATTERN;
		met = overlaps(memory + at, FOLIO_BYTES);
	}
	atomic_store(&channel->wrong, 0);
	send_cmd(TOUCH);
	munmap(memory, FILL_BYTES);
}

static void run_mixed(struct fixture *fx)
{
	uint64_t before = migrc_number("counters/flushed_mixed");

	map_folio(fx);
	if (madvise(folio + FOLIO_BYTES / 2, FOLIO_BYTES / 2, MADV_DONTFORK))
		test_error(fx, "madvise: MADV_DONTFORK");
	aim(fx, true);
	/* Words are counted from the base. */
	write_pages(fx->base, fx->pages, fx->old);
	start_child(fx, fx->cpus[READER_CPU]);
	aim(fx, false);
	fixture_move(fx);
	fx->report->deferred += fx->was_deferred;
	fx->report->triggered += fx->options->off || migrc_number("counters/flushed_mixed") > before;
	aim(fx, true);
	take_frames(fixture_other_node(fx, fx->base));
	if (atomic_load(&channel->wrong))
		test_stale(fx, "round %" PRIu64 ": the child sees others' content in %" PRIu64 " pages",
			  fx->report->rounds, atomic_load(&channel->wrong));
	end_child(fx, EXIT);
}

const struct test child_tests[] = {
	{
		.name = "fork_child", .description = "a child writes its copy, then the parent its own",
		.expect = EXPECT_NEW, .min_deferred = 50, .min_triggered = 50,
		.fixture_setup = fixture_setup_fork, .setup = setup_fork, .trigger = trigger_fork,
	}, {
		.name = "exec_exit", .description = "a process that shares the file exits or execs, then it is written",
		.expect = EXPECT_NEW, .min_deferred = 50, .min_triggered = 50,
		.fixture_setup = fixture_setup_shared, .fixture_teardown = file_fixture_teardown,
		.setup = setup_shared, .trigger = trigger_leave,
	}, {
		.name = "mixed", .description = "a folio mapped writable here, read-only there moves; others take its frames",
		.machine = true, .min_triggered = 50,
		.fixture_setup = fixture_setup_mixed, .run_round = run_mixed,
	},
	{ 0 }
};
