// SPDX-License-Identifier: GPL-2.0
#include "child.h"

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

enum order { TOUCH = 1, WRITE, CHECK_NEW, EXIT, EXEC };

static struct line {
	_Atomic int asked, done;	/* enum order */
	_Atomic uint64_t wrong;		/* pages that were not as they had to be */
} *line;
static pid_t peer;

static uint64_t count_wrong(const struct bed *bed, uint64_t value)
{
	uint64_t wrong = 0, found;

	for (size_t i = 0; i < bed->pages; i++)
		wrong += !guarded_read(bed->base + i * PAGE_BYTES, &found) || found != word(value, i);
	return wrong;
}

static void obey(struct bed *bed, enum order order)
{
	switch (order) {
	case TOUCH: atomic_store(&line->wrong, count_wrong(bed, bed->old)); break;
	case WRITE: bed_write(bed->base, bed->pages, bed->fresh); break;
	case CHECK_NEW: atomic_store(&line->wrong, count_wrong(bed, bed->fresh)); break;
	case EXIT: _exit(0);
	case EXEC:
		execl("/proc/self/exe", "stale_tlb", PEER_EXEC_OPTION, (char *)NULL);
		_exit(1);
	}
}

static _Noreturn void live(struct bed *bed, int cpu)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	cpu_pin(cpu);
	for (;;) {
		int order = atomic_load(&line->asked);

		if (!order)
			continue;
		obey(bed, order);
		atomic_store(&line->asked, 0);
		atomic_store(&line->done, order);
	}
}

static void tell(enum order order)
{
	atomic_store(&line->done, 0);
	atomic_store(&line->asked, order);
	while (order < EXIT && !atomic_load(&line->done))
		sched_yield();
}

static void open_line(struct bed *bed)
{
	if (bed->cpu_count < 3 && !bed->options->off)
		bed_skip(bed, "needs three CPUs");
	line = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (line == MAP_FAILED)
		die(EXIT_FAILED, "no shared memory: %m");
}

static void start_peer(struct bed *bed, int cpu)
{
	atomic_store(&line->asked, 0);
	peer = fork();
	if (!peer)
		live(bed, cpu);
	if (peer < 0)
		die(EXIT_FAILED, "fork: %m");
	tell(TOUCH);
	if (atomic_load(&line->wrong))
		bed_broken(bed, "the child does not see what the parent wrote");
}

static void end_peer(struct bed *bed, enum order how)
{
	tell(how);
	if (bed_reap(peer))
		bed_broken(bed, "the child did not %s", how == EXEC ? "exec" : "exit");
}

static void open_fork(struct bed *bed)
{
	open_line(bed);
	bed_map_anon(bed, bed->pages);
}

static void arrange_fork(struct bed *bed)
{
	bed_write(bed->base, bed->pages, bed->old);
	start_peer(bed, bed->cpus[2]);
}

/* The child writes its copy, goes, and the parent writes what has become its own. */
static bool act_fork(struct bed *bed)
{
	tell(WRITE);
	bed_judge(bed, SEES_OLD);
	tell(CHECK_NEW);
	if (atomic_load(&line->wrong))
		bed_stale(bed, "%" PRIu64 " pages of the child are not what it wrote", atomic_load(&line->wrong));
	end_peer(bed, EXIT);
	bed_write(bed->base, bed->pages, bed->fresh);
	return true;
}

static void open_shared(struct bed *bed)
{
	open_line(bed);
	file_open(bed);
}

static void arrange_shared(struct bed *bed)
{
	file_arrange(bed);
	start_peer(bed, bed->cpus[2]);
}

static bool act_leave(struct bed *bed)
{
	end_peer(bed, bed_random(bed, 2) ? EXEC : EXIT);
	bed_judge(bed, SEES_OLD);
	return file_write(bed, bed->fresh);
}

/*
 * A folio that one process maps writable and another one read-only: half of it is not for the child. Who flushes at
 * once for the first must do so for the second, which runs where the first never does: then the frames are free.
 */
static char *folio;
static uint64_t left;	/* frame that the folio was in */

static void map_folio(struct bed *bed)
{
	if (mmap(folio, FOLIO_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
	    MAP_FAILED)
		die(EXIT_FAILED, "no memory: %m");
	madvise(folio, FOLIO_BYTES, MADV_HUGEPAGE);
	bed_write(folio, FOLIO_PAGES, bed->old);
	if (folio_census(folio, FOLIO_BYTES, FOLIO_BYTES).exact != 1)
		bed_broken(bed, "this is no folio of 64 KiB");
	left = folio_frame(folio);
}

static void open_mixed(struct bed *bed)
{
	open_line(bed);
	if (!thp_allow_only(FOLIO_BYTES, false))
		bed_skip(bed, "no folios of 64 KiB (CONFIG_TRANSPARENT_HUGEPAGE)");
	folio = folio_reserve(FOLIO_ALIGN);
	bed->step = FOLIO_BYTES;
}

/*
 * What the bed is for the parent, who moves it, or for the child, who reads its first half: what comes
 * first is what is deferred before the writable rest shows that it should not have been.
 */
static void aim(struct bed *bed, bool child)
{
	bed->base = folio;
	bed->pages = child ? FOLIO_PAGES / 2 : FOLIO_PAGES;
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
	atomic_store(&line->wrong, 0);
	tell(TOUCH);
	munmap(memory, FILL_BYTES);
}

static void round_mixed(struct bed *bed)
{
	uint64_t before = migrc_number("counters/flushed_mixed");

	map_folio(bed);
	if (madvise(folio + FOLIO_BYTES / 2, FOLIO_BYTES / 2, MADV_DONTFORK))
		bed_broken(bed, "madvise: MADV_DONTFORK");
	aim(bed, true);
	/* Words are counted from the base. */
	bed_write(bed->base, bed->pages, bed->old);
	start_peer(bed, bed->cpus[3]);
	aim(bed, false);
	bed_move(bed);
	bed->report->deferred += bed->was_deferred;
	bed->report->acted += bed->options->off || migrc_number("counters/flushed_mixed") > before;
	aim(bed, true);
	take_frames(bed_other_node(bed, bed->base));
	if (atomic_load(&line->wrong))
		bed_stale(bed, "round %" PRIu64 ": the child sees others' content in %" PRIu64 " pages",
			  bed->report->rounds, atomic_load(&line->wrong));
	end_peer(bed, EXIT);
}

const struct event peer_events[] = {
	{
		.name = "fork_child", .what = "a child writes its copy, then the parent its own",
		.sees = SEES_NEW, .deferred = 50, .acted = 50,
		.open = open_fork, .arrange = arrange_fork, .act = act_fork,
	}, {
		.name = "exec_exit", .what = "a process that shares the file exits or execs, then it is written",
		.sees = SEES_NEW, .deferred = 50, .acted = 50,
		.open = open_shared, .arrange = arrange_shared, .act = act_leave, .close = file_close,
	}, {
		.name = "mixed", .what = "a folio mapped writable here, read-only there moves; others take its frames",
		.machine = true, .acted = 50,
		.open = open_mixed, .round = round_mixed,
	},
	{ 0 }
};
