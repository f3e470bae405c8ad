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

static bool protect(struct fixture *fx, int access)
{
	return !mprotect(fx->base, fx->pages * PAGE_BYTES, access);
}

static void setup_forked(struct fixture *fx)
{
	write_pages(fx->base, fx->pages, fx->old);
	fixture_fork_and_reap(fx);
}

static bool trigger_store(struct fixture *fx)
{
	write_pages(fx->base, fx->pages, fx->new);
	return true;
}

/* Fork flushes all of the space, so that the stores have nothing left to pay. Others may have, now and then. */
static bool trigger_fork_and_store(struct fixture *fx)
{
	uint64_t before, after = 0;
	bool counted = migrc_value(PAID, &before);

	fixture_fork_and_reap(fx);
	trigger_store(fx);
	return fx->options->off || (counted && migrc_value(PAID, &after) && after == before);
}

static bool trigger_nothing(struct fixture *fx)
{
	(void)fx;
	return true;
}

static void setup_protected(struct fixture *fx)
{
	if (!protect(fx, BOTH))
		test_error(fx, "mprotect: %s", strerror(errno));
	write_pages(fx->base, fx->pages, fx->old);
	if (!protect(fx, PROT_READ))
		test_error(fx, "mprotect: %s", strerror(errno));
}

static bool trigger_unprotect(struct fixture *fx)
{
	return protect(fx, BOTH) && trigger_store(fx);
}

static bool trigger_process_vm(struct fixture *fx)
{
	for (size_t i = 0; i < fx->pages; i++) {
		uint64_t value = page_word(fx->new, i);
		struct iovec from = { &value, sizeof(value) }, to = { fx->base + i * PAGE_BYTES, sizeof(value) };

		if (process_vm_writev(getpid(), &from, 1, &to, 1, 0) == sizeof(value))
			continue;
		if (errno == ENOSYS)
			test_skip(fx, "no process_vm_writev (CONFIG_CROSS_MEMORY_ATTACH)");
		test_error(fx, "process_vm_writev: %s", strerror(errno));
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

static int force(const struct fixture *fx, int mem)
{
	for (size_t i = 0; i < fx->pages; i++) {
		uint64_t value = page_word(tracer->value, i);

		if (pwrite(mem, &value, sizeof(value), (uintptr_t)(fx->base + i * PAGE_BYTES)) != sizeof(value))
			return errno ? errno : EIO;
	}
	return 0;
}

static _Noreturn void trace(const struct fixture *fx, pid_t whom)
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
				atomic_store(&tracer->error, force(fx, mem));
			atomic_store(&tracer->done, asked);
		}
		usleep(100);
	}
}

static void fixture_setup_force(struct fixture *fx)
{
	pid_t self = getpid();

	tracer = mmap(NULL, PAGE_BYTES, BOTH, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	fixture_map_anon(fx, fx->pages);
	/* Before it holds anything, so that the pages are the parent's alone. */
	tracer_pid = tracer == MAP_FAILED ? -1 : fork();
	if (!tracer_pid)
		trace(fx, self);
	if (tracer_pid < 0)
		test_skip(fx, "fork: %s", strerror(errno));
}

static bool trigger_force(struct fixture *fx)
{
	uint32_t asked = atomic_load(&tracer->asked) + 1;

	tracer->value = fx->new;
	atomic_store(&tracer->asked, asked);
	while (atomic_load(&tracer->done) != asked)
		sched_yield();
	if (atomic_load(&tracer->error))
		test_skip(fx, "/proc/PID/mem cannot be forced: %s", strerror(atomic_load(&tracer->error)));
	return true;
}

static void fixture_teardown_force(struct fixture *fx)
{
	(void)fx;
	kill(tracer_pid, SIGKILL);
	reap_child(tracer_pid);
}

const struct test anon_tests[] = {
	{
		.name = "write_fault", .description = "a write fault that reuses the page where it is",
		.expect = EXPECT_NEW, .min_deferred = 50, .min_triggered = 50, .in_place = true,
		.setup = setup_forked, .trigger = trigger_store,
	}, {
		.name = "mprotect_write", .description = "mprotect(2) that makes exclusive pages writable at once",
		.expect = EXPECT_NEW, .min_deferred = 50, .min_triggered = 50, .in_place = true,
		.setup = setup_protected, .trigger = trigger_unprotect,
	}, {
		.name = "fork_pays", .description = "fork, whose flush is enough, then stores",
		.expect = EXPECT_NEW, .min_deferred = 50, .min_triggered = 90, .in_place = true,
		.setup = setup_forked, .trigger = trigger_fork_and_store,
	}, {
		.name = "process_vm", .description = "process_vm_writev(2) into pages mapped read-only",
		.expect = EXPECT_NEW, .min_deferred = 50, .min_triggered = 50, .in_place = true,
		.setup = setup_forked, .trigger = trigger_process_vm,
	}, {
		.name = "gup_force", .description = "a tracer's write(2) to /proc/PID/mem where nothing may be written",
		.expect = EXPECT_NEW, .min_deferred = 50, .min_triggered = 50, .in_place = true,
		.fixture_setup = fixture_setup_force, .fixture_teardown = fixture_teardown_force,
		.setup = setup_protected, .trigger = trigger_force,
	}, {
		.name = "lazy", .description = "a write fault while the reader sleeps",
		.expect = EXPECT_NEW, .min_deferred = 50, .min_triggered = 50, .in_place = true, .reader_sleeps = true,
		.setup = setup_forked, .trigger = trigger_store,
	}, {
		.name = "control", .description = "a store that never happens: this must fail, or nothing can",
		.hidden = true, .expect = EXPECT_NEW, .setup = setup_forked, .trigger = trigger_nothing,
	},
	{ 0 }
};
