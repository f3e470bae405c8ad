// SPDX-License-Identifier: GPL-2.0
/* Pages that a process shares with its child. */
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
#include "util.h"

#define FILL_BYTES ((size_t)8 << 20)

enum cmd { CMD_CHECK_OLD = 1, CMD_WRITE, CMD_CHECK_NEW, CMD_EXIT, CMD_EXEC };

/* How the parent controls a child, which shares the fixture's pages and has TLB entries of its own of them. */
static struct channel {
	_Atomic int cmd, done;		/* enum cmd; 0: none */
	_Atomic uint64_t mismatches;	/* pages with another content, in the last check */
} *channel;
static pid_t child;

static uint64_t count_mismatches(const struct fixture *fx, uint64_t value)
{
	uint64_t mismatches = 0, found;

	for (size_t i = 0; i < fx->pages; i++)
		mismatches += !guarded_read(fx->base + i * PAGE_BYTES, &found) || found != page_word(value, i);
	return mismatches;
}

static void handle_cmd(struct fixture *fx, enum cmd cmd)
{
	switch (cmd) {
	case CMD_CHECK_OLD: atomic_store(&channel->mismatches, count_mismatches(fx, fx->old)); break;
	case CMD_WRITE: write_pages(fx->base, fx->pages, fx->new); break;
	case CMD_CHECK_NEW: atomic_store(&channel->mismatches, count_mismatches(fx, fx->new)); break;
	case CMD_EXIT: _exit(0);
	case CMD_EXEC:
		execl("/proc/self/exe", "stale_tlb", "--" EXIT_OPTION, (char *)NULL);
		_exit(1);
	}
}

static _Noreturn void child_main(struct fixture *fx, int cpu)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	cpu_pin(cpu);
	for (;;) {
		int cmd = atomic_load(&channel->cmd);

		if (!cmd)
			continue;
		handle_cmd(fx, cmd);
		atomic_store(&channel->cmd, 0);
		atomic_store(&channel->done, cmd);
	}
}

static void send_cmd(enum cmd cmd)
{
	atomic_store(&channel->done, 0);
	atomic_store(&channel->cmd, cmd);
	while (cmd < CMD_EXIT && !atomic_load(&channel->done))
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
	atomic_store(&channel->cmd, 0);
	child = fork();
	if (!child)
		child_main(fx, cpu);
	if (child < 0)
		die(EXIT_FAILED, "fork: %m");
	send_cmd(CMD_CHECK_OLD);
	if (atomic_load(&channel->mismatches))
		test_error(fx, "the child does not read what the parent wrote");
}

static void end_child(struct fixture *fx, enum cmd cmd)
{
	send_cmd(cmd);
	if (reap_child(child))
		test_error(fx, "the child did not %s", cmd == CMD_EXEC ? "exec" : "exit");
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

/* The child writes its copies and exits; then the parent writes the pages, which are now its own. */
static bool trigger_fork(struct fixture *fx)
{
	send_cmd(CMD_WRITE);
	fixture_check(fx, EXPECT_OLD);
	send_cmd(CMD_CHECK_NEW);
	if (atomic_load(&channel->mismatches))
		test_stale(fx, "the child does not read what it wrote in %" PRIu64 " pages",
			   atomic_load(&channel->mismatches));
	end_child(fx, CMD_EXIT);
	return trigger_store(fx);
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

static bool trigger_child_ends(struct fixture *fx)
{
	end_child(fx, fixture_random(fx, 2) ? CMD_EXEC : CMD_EXIT);
	fixture_check(fx, EXPECT_OLD);
	return file_write(fx, fx->new);
}

/*
 * mixed: the parent maps a folio writable, and its child maps the first half of it read-only. If migration flushes at
 * once because of the parent's writable mapping, it must also flush for the child, which runs on a CPU where the parent
 * never runs, because the old frames are then free at once.
 */
static uint64_t old_frame;	/* the folio's first */

static void fixture_setup_mixed(struct fixture *fx)
{
	open_channel(fx);
	fixture_setup_folio(fx);
}

/* Allocate and write folios on the node that the folio was on, until one has its frames; then let the child read. */
static void reuse_frames(int node)
{
	char *memory = mmap(NULL, FILL_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool reused = false;

	if (memory == MAP_FAILED)
		die(EXIT_FAILED, "no memory: %m");
	madvise(memory, FILL_BYTES, MADV_HUGEPAGE);
	node_bind(memory, FILL_BYTES, node);
	for (size_t at = 0; at < FILL_BYTES && !reused; at += FOLIO_BYTES) {
		write_pattern(memory + at, FOLIO_BYTES);
		for (size_t i = 0; i < FOLIO_BYTES; i += PAGE_BYTES)
			reused |= folio_frame(memory + at + i) - old_frame < FOLIO_PAGES;
	}
	send_cmd(CMD_CHECK_OLD);
	munmap(memory, FILL_BYTES);
}

static void run_mixed(struct fixture *fx)
{
	uint64_t before = migrc_number("counters/flushed_mixed");

	/*
	 * The fixture is the whole folio for the parent, which moves it, but its first half for the child, which reads
	 * it. Migration unmaps the first half first and may defer its flush, before the writable PTEs of the second
	 * half show that it may not.
	 */
	fx->pages = FOLIO_PAGES;
	setup_folio(fx);
	old_frame = folio_frame(fx->base);
	if (madvise(fx->base + FOLIO_BYTES / 2, FOLIO_BYTES / 2, MADV_DONTFORK))
		test_error(fx, "madvise: MADV_DONTFORK");
	fx->pages = FOLIO_PAGES / 2;
	start_child(fx, fx->cpus[READER_CPU]);
	fx->pages = FOLIO_PAGES;
	fixture_move(fx);
	fx->report->deferred += fx->was_deferred;
	fx->report->triggered += fx->options->off || migrc_number("counters/flushed_mixed") > before;
	fx->pages = FOLIO_PAGES / 2;
	reuse_frames(fixture_other_node(fx, fx->base));
	if (atomic_load(&channel->mismatches))
		test_stale(fx, "the child reads other content in %" PRIu64 " pages", atomic_load(&channel->mismatches));
	end_child(fx, CMD_EXIT);
}

const struct test child_tests[] = {
	{
		.name = "fork_child", .description = "a child writes its copies, then the parent its pages",
		.expect = EXPECT_NEW, .min_deferred = 50, .min_triggered = 50,
		.fixture_setup = fixture_setup_fork, .setup = setup_fork, .trigger = trigger_fork,
	}, {
		.name = "exec_exit", .description = "a process that maps a file ends, then the file is written",
		.expect = EXPECT_NEW, .min_deferred = 50, .min_triggered = 50,
		.fixture_setup = fixture_setup_shared, .fixture_teardown = file_fixture_teardown,
		.setup = setup_shared, .trigger = trigger_child_ends,
	}, {
		.name = "mixed", .description = "a folio is mapped writable and, by a child, read-only; frame reuse",
		.machine = true, .min_triggered = 50,
		.fixture_setup = fixture_setup_mixed, .run_round = run_mixed,
	},
	{ 0 }
};
