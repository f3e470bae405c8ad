// SPDX-License-Identifier: GPL-2.0
/* Private memory that is mapped read-only, and written where it is. */
#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <unistd.h>

#include "util.h"

#define BOTH (PROT_READ | PROT_WRITE)
#define PAID "counters/flushed_write_fault"

static bool protect(struct bed *bed, int access)
{
	return !mprotect(bed->base, bed->pages * PAGE_BYTES, access);
}

static void arrange_forked(struct bed *bed)
{
	bed_write(bed->base, bed->pages, bed->old);
	bed_fork_once(bed);
}

static bool act_store(struct bed *bed)
{
	bed_write(bed->base, bed->pages, bed->fresh);
	return true;
}

/* Fork flushes all of the space, so that the stores have nothing left to pay. Others may have, now and then. */
static bool act_fork_and_store(struct bed *bed)
{
	uint64_t before, after = 0;
	bool counted = migrc_value(PAID, &before);

	bed_fork_once(bed);
	act_store(bed);
	return bed->options->off || (counted && migrc_value(PAID, &after) && after == before);
}

static bool act_nothing(struct bed *bed)
{
	(void)bed;
	return true;
}

static void arrange_protected(struct bed *bed)
{
	if (!protect(bed, BOTH))
		bed_broken(bed, "mprotect: %s", strerror(errno));
	bed_write(bed->base, bed->pages, bed->old);
	if (!protect(bed, PROT_READ))
		bed_broken(bed, "mprotect: %s", strerror(errno));
}

static bool act_unprotect(struct bed *bed)
{
	return protect(bed, BOTH) && act_store(bed);
}

static bool act_process_vm(struct bed *bed)
{
	for (size_t i = 0; i < bed->pages; i++) {
		uint64_t value = word(bed->fresh, i);
		struct iovec from = { &value, sizeof(value) }, to = { bed->base + i * PAGE_BYTES, sizeof(value) };

		if (process_vm_writev(getpid(), &from, 1, &to, 1, 0) == sizeof(value))
			continue;
		if (errno == ENOSYS)
			bed_skip(bed, "no process_vm_writev (CONFIG_CROSS_MEMORY_ATTACH)");
		bed_broken(bed, "process_vm_writev: %s", strerror(errno));
		return false;
	}
	return true;
}

/* By default only a tracer may write to memory that is not writable: a child traces this process. */
static struct tracer {
	_Atomic uint32_t asked, done;
	_Atomic int error;
	uint64_t value;
} *tracer;
static pid_t tracer_pid;

static int force(const struct bed *bed, int mem)
{
	for (size_t i = 0; i < bed->pages; i++) {
		uint64_t value = word(tracer->value, i);

		if (pwrite(mem, &value, sizeof(value), (uintptr_t)(bed->base + i * PAGE_BYTES)) != sizeof(value))
			return errno ? errno : EIO;
	}
	return 0;
}

static _Noreturn void trace(const struct bed *bed, pid_t whom)
{
	char path[32];
	int mem;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(path, sizeof(path), "/proc/%d/mem", whom);
	mem = open(path, O_RDWR | O_CLOEXEC);
	if (mem < 0 || ptrace(PTRACE_SEIZE, whom, NULL, NULL))
		atomic_store(&tracer->error, errno);
	for (;;) {
		uint32_t asked = atomic_load(&tracer->asked);

		if (asked != atomic_load(&tracer->done)) {
			if (!atomic_load(&tracer->error))
				atomic_store(&tracer->error, force(bed, mem));
			atomic_store(&tracer->done, asked);
		}
		usleep(100);
	}
}

static void open_force(struct bed *bed)
{
	pid_t self = getpid();

	tracer = mmap(NULL, PAGE_BYTES, BOTH, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	bed_map_anon(bed, bed->pages);
	/* Before it holds anything, so that the pages are the parent's alone. */
	tracer_pid = tracer == MAP_FAILED ? -1 : fork();
	if (!tracer_pid)
		trace(bed, self);
	if (tracer_pid < 0)
		bed_skip(bed, "fork: %s", strerror(errno));
}

static bool act_force(struct bed *bed)
{
	uint32_t asked = atomic_load(&tracer->asked) + 1;

	tracer->value = bed->fresh;
	atomic_store(&tracer->asked, asked);
	while (atomic_load(&tracer->done) != asked)
		sched_yield();
	if (atomic_load(&tracer->error))
		bed_skip(bed, "/proc/PID/mem cannot be forced: %s", strerror(atomic_load(&tracer->error)));
	return true;
}

static void close_force(struct bed *bed)
{
	(void)bed;
	kill(tracer_pid, SIGKILL);
	bed_reap(tracer_pid);
}

const struct event anon_events[] = {
	{
		.name = "write_fault", .what = "a write fault that reuses the page where it is",
		.sees = SEES_NEW, .deferred = 50, .acted = 50, .in_place = true,
		.arrange = arrange_forked, .act = act_store,
	}, {
		.name = "mprotect_write", .what = "mprotect(2) that makes exclusive pages writable at once",
		.sees = SEES_NEW, .deferred = 50, .acted = 50, .in_place = true,
		.arrange = arrange_protected, .act = act_unprotect,
	}, {
		.name = "fork_pays", .what = "fork, whose flush is enough, then stores",
		.sees = SEES_NEW, .deferred = 50, .acted = 90, .in_place = true,
		.arrange = arrange_forked, .act = act_fork_and_store,
	}, {
		.name = "process_vm", .what = "process_vm_writev(2) into pages mapped read-only",
		.sees = SEES_NEW, .deferred = 50, .acted = 50, .in_place = true,
		.arrange = arrange_forked, .act = act_process_vm,
	}, {
		.name = "gup_force", .what = "a tracer's write(2) to /proc/PID/mem where nothing may be written",
		.sees = SEES_NEW, .deferred = 50, .acted = 50, .in_place = true,
		.open = open_force, .arrange = arrange_protected, .act = act_force, .close = close_force,
	}, {
		.name = "lazy", .what = "a write fault while the reader sleeps",
		.sees = SEES_NEW, .deferred = 50, .acted = 50, .in_place = true, .sleeps = true,
		.arrange = arrange_forked, .act = act_store,
	}, {
		.name = "control", .what = "a store that never happens: this must fail, or nothing can",
		.hidden = true, .sees = SEES_NEW, .arrange = arrange_forked, .act = act_nothing,
	},
	{ 0 }
};
