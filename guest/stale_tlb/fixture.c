// SPDX-License-Identifier: GPL-2.0
#include "fixture.h"

#include <errno.h>
#include <inttypes.h>
#include <numaif.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "folio.h"
#include "sysfs.h"
#include "util.h"

#define WARM_BYTES (32 * 1024)
#define CONTROL "counters/ptes"

static void note(struct fixture *fx, const char *format, va_list args)
{
	if (!fx->report->reason[0])
		vsnprintf(fx->report->reason, sizeof(fx->report->reason), format, args);
}

void test_skip(struct fixture *fx, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(fx->report->reason, sizeof(fx->report->reason), format, args);
	va_end(args);
	exit(EXIT_MISSING);
}

void test_error(struct fixture *fx, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	note(fx, format, args);
	va_end(args);
	fx->report->errors++;
}

void test_stale(struct fixture *fx, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	note(fx, format, args);
	va_end(args);
	fx->report->stale++;
}

uint64_t fixture_random(struct fixture *fx, uint64_t below)
{
	return xorshift64(&fx->random) % below;
}

int reap_child(pid_t child)
{
	int status;

	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool mount_debugfs(void)
{
	if (access(THP_SPLIT_FILE, F_OK))
		mount("debugfs", "/sys/kernel/debug", "debugfs", 0, NULL);
	if (access("/sys/kernel/tracing/trace", F_OK))
		mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, NULL);
	return !access("/sys/kernel/debug", X_OK);
}

char *fixture_map_anon(struct fixture *fx, size_t pages)
{
	size_t bytes = pages * PAGE_BYTES;
	/* At no page table's start: mremap() would move whole page tables as such, and flush them as such. */
	char *base = folio_reserve(bytes + FOLIO_ALIGN) + 3 * PAGE_BYTES;

	if (mmap(base, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		die(EXIT_FAILED, "no memory: %m");
	madvise(base, bytes, MADV_NOHUGEPAGE);
	fx->base = base;
	fx->pages = pages;
	return base;
}

static void pad(char *base, size_t pages)
{
	write_pages(base, pages, 0);
	if (mprotect(base, pages * PAGE_BYTES, PROT_READ))
		die(EXIT_FAILED, "mprotect: %m");
}

void fixture_add_padding(struct fixture *fx, size_t before, size_t after)
{
	pad(fx->base, before);
	fx->base += before * PAGE_BYTES;
	fx->pages -= before + after;
	pad(fx->base + fx->pages * PAGE_BYTES, after);
	fx->padding_before = before;
	fx->padding_after = after;
}

void write_pages(char *base, size_t pages, uint64_t value)
{
	for (size_t i = 0; i < pages; i++)
		*(volatile uint64_t *)(base + i * PAGE_BYTES) = page_word(value, i);
}

void fixture_fork_and_reap(struct fixture *fx)
{
	pid_t child = fork();

	if (!child)
		_exit(0);
	if (child < 0 || reap_child(child))
		test_error(fx, "fork: %s", strerror(errno));
}

int fixture_other_node(const struct fixture *fx, void *page)
{
	const int *nodes = fx->options->nodes;
	int where;

	if (move_pages(0, 1, &page, NULL, &where, 0) || where < 0)
		return nodes[1];
	return where == nodes[0] ? nodes[1] : nodes[0];
}

bool fixture_page_absent(const struct fixture *fx, size_t index)
{
	return folio_frame(fx->base + index * PAGE_BYTES) == UINT64_MAX;
}

bool fixture_all_unmapped(const struct fixture *fx)
{
	return fixture_page_absent(fx, fx->pages - 1);
}

void fixture_move(struct fixture *fx)
{
	int node = fixture_other_node(fx, fx->base);
	uint64_t before = migrc_number(CONTROL);
	size_t padding = fx->padding_before + fx->padding_after;

	moveset_retarget(&fx->set, fx->base - fx->padding_before * PAGE_BYTES, (padding + fx->pages) * PAGE_BYTES, fx->step);
	fx->moved = moveset_move(&fx->set, node, MPOL_MF_MOVE_ALL, false).moved;
	fx->was_deferred = migrc_number(CONTROL) > before + padding;
	fx->report->moved += fx->moved;
}

static const char *name_of(unsigned int seen)
{
	switch (seen) {
	case EXPECT_OLD: return "old";
	case EXPECT_NEW: return "new";
	case EXPECT_ZERO: return "zero";
	case EXPECT_FAULT: return "a fault";
	default: return "something else";
	}
}

static unsigned int kind_of(const struct fixture *fx, size_t index)
{
	const struct read_result *result = &fx->reader->results[index];

	if (result->fault)
		return EXPECT_FAULT;
	if (result->value == page_word(fx->new, index))
		return EXPECT_NEW;
	if (result->value == page_word(fx->old, index))
		return EXPECT_OLD;
	return result->value ? 0 : EXPECT_ZERO;
}

void fixture_check(struct fixture *fx, unsigned int expect)
{
	reader_sample(fx->reader, fx->base, fx->pages);
	for (size_t i = 0; i < fx->pages; i++) {
		unsigned int seen = kind_of(fx, i);

		if (seen & expect)
			continue;
		/* A fault shows nothing, so it is never stale. */
		if (seen == EXPECT_FAULT)
			test_error(fx, "round %" PRIu64 ": page %zu faults", fx->report->rounds, i);
		else
			test_stale(fx, "round %" PRIu64 ": page %zu shows 0x%" PRIx64 ", %s content",
				  fx->report->rounds, i, fx->reader->results[i].value, name_of(seen));
		return;
	}
}

/* After a fork the first store to each page of one's own is a fault, which makes the kernel flush: let it be now. */
static void warm_up(void)
{
	volatile char stack[WARM_BYTES];

	for (size_t i = 0; i < sizeof(stack); i += 64)
		stack[i] = 1;
	migrc_number(CONTROL);
}

void fixture_fill_tlb(struct fixture *fx)
{
	warm_up();
	reader_sample(fx->reader, fx->base, fx->pages);
	for (size_t i = 0; i < fx->pages; i++)
		if (kind_of(fx, i) != EXPECT_OLD) {
			test_error(fx, "before the move page %zu shows 0x%" PRIx64 ", %s content", i,
				   fx->reader->results[i].value, name_of(kind_of(fx, i)));
			return;
		}
}

static void quiet_round(struct fixture *fx)
{
	const struct test *test = fx->test;
	uint64_t frame = 0;
	bool triggered;

	test->setup(fx);
	fixture_fill_tlb(fx);
	if (test->reader_sleeps)
		reader_sleep(fx->reader);
	fixture_move(fx);
	if (test->in_place)
		frame = folio_frame(fx->base);
	triggered = test->trigger(fx);
	fixture_check(fx, test->expect);
	if (test->in_place)
		triggered = triggered && frame == folio_frame(fx->base);
	fx->report->triggered += triggered;
	fx->report->deferred += fx->was_deferred;
}

void fixture_run_round(struct fixture *fx)
{
	fx->old = fx->new + 1;
	fx->new = fx->old + 1;
	if (fx->test->run_round)
		fx->test->run_round(fx);
	else
		quiet_round(fx);
	fx->report->rounds++;
}

static void choose_cpus(struct fixture *fx)
{
	cpu_set_t cpus;
	int all[CPU_SETSIZE];

	CPU_ZERO(&cpus);
	if (sched_getaffinity(0, sizeof(cpus), &cpus))
		die(EXIT_FAILED, "sched_getaffinity: %m");
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &cpus))
			all[fx->cpu_count++] = cpu;
	if (fx->cpu_count < 2)
		test_skip(fx, "needs two CPUs");
	for (unsigned int i = 0; i < READER_CPU; i++)
		fx->cpus[i] = all[i < fx->cpu_count - 1 ? i : fx->cpu_count - 2];
	fx->cpus[READER_CPU] = all[fx->cpu_count - 1];
	cpu_pin(fx->cpus[MAIN_CPU]);
}

void fixture_setup(struct fixture *fx, const struct test *test, const struct options *options, struct report *report)
{
	*fx = (struct fixture){ .test = test, .options = options, .report = report,
			     .pages = test->pages ? test->pages : DEFAULT_PAGES, .step = PAGE_BYTES,
			     .random = options->seed * 2 + 1, .new = 1 };
	if (test->machine && !options->machine)
		test_skip(fx, "it would take something from the whole machine: --machine, in a guest");
	choose_cpus(fx);
	guard_faults();
	fx->reader = reader_new(fx->cpus[READER_CPU]);
	moveset_init(&fx->set, NULL, MAX_PAGES * PAGE_BYTES, PAGE_BYTES);
	if (test->fixture_setup)
		test->fixture_setup(fx);
	else
		fixture_map_anon(fx, fx->pages);
}

void fixture_teardown(struct fixture *fx)
{
	if (fx->test->fixture_teardown)
		fx->test->fixture_teardown(fx);
	reader_free(fx->reader);
	moveset_free(&fx->set);
}
