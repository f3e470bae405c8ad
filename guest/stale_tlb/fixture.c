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

#define STACK_BYTES (32 * 1024)
#define DEFERRED_PTES "counters/ptes"

void test_skip(struct fixture *fx, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(fx->report->reason, sizeof(fx->report->reason), format, args);
	va_end(args);
	exit(EXIT_MISSING);
}

/* Keep the reason of the first error or stale read. */
static void set_reason(struct report *report, const char *format, va_list args)
{
	size_t size = sizeof(report->reason);
	int used;

	if (report->reason[0])
		return;
	used = snprintf(report->reason, size, "round %" PRIu64 ": ", report->rounds);
	vsnprintf(report->reason + used, size - used, format, args);
}

void test_error(struct fixture *fx, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	set_reason(fx->report, format, args);
	va_end(args);
	fx->report->errors++;
}

void test_stale(struct fixture *fx, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	set_reason(fx->report, format, args);
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
	fx->base = folio_reserve(pages * PAGE_BYTES + FOLIO_ALIGN) + 3 * PAGE_BYTES;
	fx->pages = pages;
	fixture_remap_anon(fx, MADV_NOHUGEPAGE);
	return fx->base;
}

void fixture_remap_anon(struct fixture *fx, int advice)
{
	if (mmap(fx->base, fixture_bytes(fx), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
	    MAP_FAILED)
		die(EXIT_FAILED, "no memory: %m");
	madvise(fx->base, fixture_bytes(fx), advice);
}

static void make_padding(char *base, size_t pages)
{
	write_pages(base, pages, 0);
	if (mprotect(base, pages * PAGE_BYTES, PROT_READ))
		die(EXIT_FAILED, "mprotect: %m");
}

void fixture_add_padding(struct fixture *fx, size_t before, size_t after)
{
	make_padding(fx->base, before);
	fx->base += before * PAGE_BYTES;
	fx->pages -= before + after;
	make_padding(fx->base + fx->pages * PAGE_BYTES, after);
	fx->padding_before = before;
	fx->padding_after = after;
}

void write_pages(char *base, size_t pages, uint64_t value)
{
	for (size_t i = 0; i < pages; i++)
		*(volatile uint64_t *)(base + i * PAGE_BYTES) = page_word(value, i);
}

void write_pattern(char *memory, size_t bytes)
{
	for (size_t at = 0; at < bytes; at += sizeof(uint64_t))
		*(volatile uint64_t *)(memory + at) = UINT64_C(0x5555555555555555);
}

void fixture_fork_and_reap(struct fixture *fx)
{
	pid_t child = fork();

	if (!child)
		_exit(0);
	if (child < 0 || reap_child(child))
		test_error(fx, "fork: %s", strerror(errno));
}

void setup_forked(struct fixture *fx)
{
	write_pages(fx->base, fx->pages, fx->old);
	fixture_fork_and_reap(fx);
}

void setup_protected(struct fixture *fx)
{
	bool done = !mprotect(fx->base, fixture_bytes(fx), PROT_READ | PROT_WRITE);

	write_pages(fx->base, fx->pages, fx->old);
	if (!done || mprotect(fx->base, fixture_bytes(fx), PROT_READ))
		test_error(fx, "mprotect: %s", strerror(errno));
}

bool trigger_store(struct fixture *fx)
{
	write_pages(fx->base, fx->pages, fx->new);
	return true;
}

void fixture_setup_folio(struct fixture *fx)
{
	if (!thp_allow_only(FOLIO_BYTES, false))
		test_skip(fx, "no 64-KiB folios (CONFIG_TRANSPARENT_HUGEPAGE)");
	fx->base = folio_reserve(FOLIO_ALIGN);
	fx->pages = FOLIO_PAGES;
	fx->step = FOLIO_BYTES;
}

void setup_folio(struct fixture *fx)
{
	fixture_remap_anon(fx, MADV_HUGEPAGE);
	write_pages(fx->base, fx->pages, fx->old);
	if (folio_census(fx->base, FOLIO_BYTES, FOLIO_BYTES).exact != 1)
		test_error(fx, "the kernel allocated no 64-KiB folio");
}

int fixture_other_node(const struct fixture *fx, void *page)
{
	const int *nodes = fx->options->nodes;
	int where;

	if (move_pages(0, 1, &page, NULL, &where, 0) || where < 0)
		return nodes[1];
	return where == nodes[0] ? nodes[1] : nodes[0];
}

int fixture_node(const struct fixture *fx, void *page)
{
	return fx->options->nodes[0] + fx->options->nodes[1] - fixture_other_node(fx, page);
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
	uint64_t before = migrc_number(DEFERRED_PTES);
	size_t padding = fx->padding_before + fx->padding_after;

	moveset_retarget(&fx->set, fx->base - fx->apart - fx->padding_before * PAGE_BYTES,
			 fx->padding_before * PAGE_BYTES, fx->step);
	moveset_add(&fx->set, fx->base, (fx->pages + fx->padding_after) * PAGE_BYTES, fx->step);
	fx->moved = moveset_move(&fx->set, node, MPOL_MF_MOVE_ALL, 0).moved;
	fx->was_deferred = migrc_number(DEFERRED_PTES) > before + padding;
	fx->report->moved += fx->moved;
}

static const char *expect_name(unsigned int read)
{
	switch (read) {
	case EXPECT_OLD: return "old content";
	case EXPECT_NEW: return "new content";
	case EXPECT_ZERO: return "zero content";
	case EXPECT_FAULT: return "a fault";
	default: return "unknown content";
	}
}

/* Classify a result of the reader as one of enum expect, or as 0, another content. */
static unsigned int classify(const struct fixture *fx, size_t index)
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
		unsigned int read = classify(fx, i);

		if (read & expect)
			continue;
		/* A fault returns no data, so it is never stale. */
		if (read == EXPECT_FAULT)
			test_error(fx, "page %zu faults", i);
		else
			test_stale(fx, "page %zu reads 0x%" PRIx64 ": %s", i, fx->reader->results[i].value,
				   expect_name(read));
		return;
	}
}

/*
 * After a fork this process's first store to each page of its own faults, and the kernel then does a pending flush.
 * Take the faults of the stack now, because after the move they would do the flush that it deferred.
 */
static void touch_stack(void)
{
	volatile char stack[STACK_BYTES];

	for (size_t i = 0; i < sizeof(stack); i += 64)
		stack[i] = 1;
	migrc_number(DEFERRED_PTES);
}

void fixture_fill_tlb(struct fixture *fx)
{
	touch_stack();
	reader_sample(fx->reader, fx->base, fx->pages);
	for (size_t i = 0; i < fx->pages; i++) {
		unsigned int read = classify(fx, i);

		if (read == EXPECT_OLD)
			continue;
		test_error(fx, "page %zu reads 0x%" PRIx64 " before the move: %s", i, fx->reader->results[i].value,
			   expect_name(read));
		return;
	}
}

static void run_default(struct fixture *fx)
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
		run_default(fx);
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
	*fx = (struct fixture){
		.test = test, .options = options, .report = report,
		.pages = test->pages ? test->pages : DEFAULT_PAGES, .step = PAGE_BYTES,
		.random = options->seed * 2 + 1, .new = 1,
	};
	if (test->machine && !options->machine)
		test_skip(fx, "takes CPUs, memory or settings from the whole machine: needs --machine, in a guest");
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
