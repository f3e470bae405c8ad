// SPDX-License-Identifier: GPL-2.0
/* Private memory that is mapped read-only and then written in place. */
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

#define FLUSHES "counters/flushed_write_fault"

/*
 * fork() flushes the TLB of the whole mm, so that the stores find no flush pending. The counter is system-wide: other
 * processes may raise it in a few rounds.
 */
static bool trigger_fork_and_store(struct fixture *fx)
{
	uint64_t before, after = 0;
	bool counted = migrc_value(FLUSHES, &before);

	fixture_fork_and_reap(fx);
	trigger_store(fx);
	return fx->options->off || (counted && migrc_value(FLUSHES, &after) && after == before);
}

static bool trigger_nothing(struct fixture *fx)
{
	(void)fx;
	return true;
}

static bool trigger_unprotect(struct fixture *fx)
{
	return !mprotect(fx->base, fixture_bytes(fx), PROT_READ | PROT_WRITE) && trigger_store(fx);
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

/*
 * A child that traces this process and writes through /proc/PID/mem: by default only a tracer may write to memory that
 * is not writable.
 */
static struct tracer {
	_Atomic uint32_t requested, done;
	_Atomic int error;
	uint64_t value;
} *tracer;
static pid_t tracer_pid;

static int write_mem(const struct fixture *fx, int mem)
{
	for (size_t i = 0; i < fx->pages; i++) {
		uint64_t value = page_word(tracer->value, i);

		if (pwrite(mem, &value, sizeof(value), (uintptr_t)(fx->base + i * PAGE_BYTES)) != sizeof(value))
			return errno ? errno : EIO;
	}
	return 0;
}

static _Noreturn void tracer_main(const struct fixture *fx, pid_t tracee)
{
	char path[32];
	int mem;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(path, sizeof(path), "/proc/%d/mem", tracee);
	mem = open(path, O_RDWR | O_CLOEXEC);
	if (mem < 0 || ptrace(PTRACE_SEIZE, tracee, NULL, NULL))
		atomic_store(&tracer->error, errno);
	for (;;) {
		uint32_t request = atomic_load(&tracer->requested);

		if (request != atomic_load(&tracer->done)) {
			if (!atomic_load(&tracer->error))
				atomic_store(&tracer->error, write_mem(fx, mem));
			atomic_store(&tracer->done, request);
		}
		usleep(100);
	}
}

static void fixture_setup_tracer(struct fixture *fx)
{
	pid_t self = getpid();

	tracer = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	fixture_map_anon(fx, fx->pages);
	/* Fork before the memory has pages, so that the child shares none of them. */
	tracer_pid = tracer == MAP_FAILED ? -1 : fork();
	if (!tracer_pid)
		tracer_main(fx, self);
	if (tracer_pid < 0)
		test_skip(fx, "fork: %s", strerror(errno));
}

static bool trigger_tracer(struct fixture *fx)
{
	uint32_t request = atomic_load(&tracer->requested) + 1;

	tracer->value = fx->new;
	atomic_store(&tracer->requested, request);
	while (atomic_load(&tracer->done) != request)
		sched_yield();
	if (atomic_load(&tracer->error))
		test_skip(fx, "a tracer cannot write to /proc/PID/mem: %s", strerror(atomic_load(&tracer->error)));
	return true;
}

static void fixture_teardown_tracer(struct fixture *fx)
{
	(void)fx;
	kill(tracer_pid, SIGKILL);
	reap_child(tracer_pid);
}

const struct test anon_tests[] = {
	{
		.name = "write_fault", .description = "a write fault reuses the page in place",
		.expect = EXPECT_NEW, .min_deferred = 50, .min_triggered = 50, .in_place = true,
		.setup = setup_forked, .trigger = trigger_store,
	}, {
		.name = "mprotect_write", .description = "mprotect(2) makes exclusive pages writable without a fault",
		.expect = EXPECT_NEW, .min_deferred = 50, .min_triggered = 50, .in_place = true,
		.setup = setup_protected, .trigger = trigger_unprotect,
	}, {
		.name = "fork_flushes", .description = "fork() does the pending flush, then stores",
		.expect = EXPECT_NEW, .min_deferred = 50, .min_triggered = 75, .in_place = true,
		.setup = setup_forked, .trigger = trigger_fork_and_store,
	}, {
		.name = "process_vm", .description = "process_vm_writev(2) writes to pages mapped read-only",
		.expect = EXPECT_NEW, .min_deferred = 50, .min_triggered = 50, .in_place = true,
		.setup = setup_forked, .trigger = trigger_process_vm,
	}, {
		.name = "gup_force", .description = "a tracer writes through /proc/PID/mem to pages mapped read-only",
		.expect = EXPECT_NEW, .min_deferred = 50, .min_triggered = 50, .in_place = true,
		.fixture_setup = fixture_setup_tracer, .fixture_teardown = fixture_teardown_tracer,
		.setup = setup_protected, .trigger = trigger_tracer,
	}, {
		.name = "lazy", .description = "a write fault while the reader sleeps, in lazy TLB mode",
		.expect = EXPECT_NEW, .min_deferred = 50, .min_triggered = 50, .in_place = true, .reader_sleeps = true,
		.setup = setup_forked, .trigger = trigger_store,
	}, {
		.name = "control", .description = "no store: this test must fail, or no other could",
		.hidden = true, .expect = EXPECT_NEW, .setup = setup_forked, .trigger = trigger_nothing,
	},
	{ 0 }
};
