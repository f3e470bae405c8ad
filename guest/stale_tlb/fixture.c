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

static void note(struct bed *bed, const char *format, va_list args)
{
	if (!bed->report->reason[0])
		vsnprintf(bed->report->reason, sizeof(bed->report->reason), format, args);
}

void bed_skip(struct bed *bed, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(bed->report->reason, sizeof(bed->report->reason), format, args);
	va_end(args);
	exit(EXIT_MISSING);
}

void bed_broken(struct bed *bed, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	note(bed, format, args);
	va_end(args);
	bed->report->broken++;
}

void bed_stale(struct bed *bed, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	note(bed, format, args);
	va_end(args);
	bed->report->stale++;
}

uint64_t bed_random(struct bed *bed, uint64_t below)
{
	return xorshift64(&bed->random) % below;
}

int bed_reap(pid_t child)
{
	int status;

	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool bed_debugfs(void)
{
	if (access(THP_SPLIT_FILE, F_OK))
		mount("debugfs", "/sys/kernel/debug", "debugfs", 0, NULL);
	if (access("/sys/kernel/tracing/trace", F_OK))
		mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, NULL);
	return !access("/sys/kernel/debug", X_OK);
}

char *bed_map_anon(struct bed *bed, size_t pages)
{
	size_t bytes = pages * PAGE_BYTES;
	/* At no page table's start: mremap() would move whole page tables as such, and flush them as such. */
	char *base = folio_reserve(bytes + FOLIO_ALIGN) + 3 * PAGE_BYTES;

	if (mmap(base, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		die(EXIT_FAILED, "no memory: %m");
	madvise(base, bytes, MADV_NOHUGEPAGE);
	bed->base = base;
	bed->pages = pages;
	return base;
}

static void pad(char *base, size_t pages)
{
	bed_write(base, pages, 0);
	if (mprotect(base, pages * PAGE_BYTES, PROT_READ))
		die(EXIT_FAILED, "mprotect: %m");
}

void bed_pad(struct bed *bed, size_t before, size_t after)
{
	pad(bed->base, before);
	bed->base += before * PAGE_BYTES;
	bed->pages -= before + after;
	pad(bed->base + bed->pages * PAGE_BYTES, after);
	bed->before = before;
	bed->after = after;
}

void bed_write(char *base, size_t pages, uint64_t value)
{
	for (size_t i = 0; i < pages; i++)
		*(volatile uint64_t *)(base + i * PAGE_BYTES) = word(value, i);
}

void bed_fork_once(struct bed *bed)
{
	pid_t child = fork();

	if (!child)
		_exit(0);
	if (child < 0 || bed_reap(child))
		bed_broken(bed, "fork: %s", strerror(errno));
}

int bed_other_node(const struct bed *bed, void *page)
{
	const int *nodes = bed->options->nodes;
	int where;

	if (move_pages(0, 1, &page, NULL, &where, 0) || where < 0)
		return nodes[1];
	return where == nodes[0] ? nodes[1] : nodes[0];
}

bool bed_absent(const struct bed *bed, size_t index)
{
	return folio_frame(bed->base + index * PAGE_BYTES) == UINT64_MAX;
}

bool bed_under_way(const struct bed *bed)
{
	return bed_absent(bed, bed->pages - 1);
}

void bed_move(struct bed *bed)
{
	int node = bed_other_node(bed, bed->base);
	uint64_t before = migrc_number(CONTROL);
	size_t padding = bed->before + bed->after;

	moveset_retarget(&bed->set, bed->base - bed->before * PAGE_BYTES, (padding + bed->pages) * PAGE_BYTES, bed->step);
	bed->moved = moveset_move(&bed->set, node, MPOL_MF_MOVE_ALL, false).moved;
	bed->was_deferred = migrc_number(CONTROL) > before + padding;
	bed->report->moved += bed->moved;
}

static const char *name_of(unsigned int seen)
{
	switch (seen) {
	case SEES_OLD: return "old";
	case SEES_NEW: return "new";
	case SEES_ZERO: return "zero";
	case SEES_FAULT: return "a fault";
	default: return "something else";
	}
}

static unsigned int kind_of(const struct bed *bed, size_t index)
{
	const struct sight *sight = &bed->reader->sights[index];

	if (sight->fault)
		return SEES_FAULT;
	if (sight->value == word(bed->fresh, index))
		return SEES_NEW;
	if (sight->value == word(bed->old, index))
		return SEES_OLD;
	return sight->value ? 0 : SEES_ZERO;
}

void bed_judge(struct bed *bed, unsigned int sees)
{
	reader_look(bed->reader, bed->base, bed->pages);
	for (size_t i = 0; i < bed->pages; i++) {
		unsigned int seen = kind_of(bed, i);

		if (seen & sees)
			continue;
		/* A fault shows nothing, so it is never stale. */
		if (seen == SEES_FAULT)
			bed_broken(bed, "round %" PRIu64 ": page %zu faults", bed->report->rounds, i);
		else
			bed_stale(bed, "round %" PRIu64 ": page %zu shows 0x%" PRIx64 ", %s content",
				  bed->report->rounds, i, bed->reader->sights[i].value, name_of(seen));
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

void bed_touch(struct bed *bed)
{
	warm_up();
	reader_look(bed->reader, bed->base, bed->pages);
	for (size_t i = 0; i < bed->pages; i++)
		if (kind_of(bed, i) != SEES_OLD) {
			bed_broken(bed, "before the move page %zu shows 0x%" PRIx64 ", %s content", i,
				   bed->reader->sights[i].value, name_of(kind_of(bed, i)));
			return;
		}
}

static void quiet_round(struct bed *bed)
{
	const struct event *event = bed->event;
	uint64_t frame = 0;
	bool acted;

	event->arrange(bed);
	bed_touch(bed);
	if (event->sleeps)
		reader_sleep(bed->reader);
	bed_move(bed);
	if (event->in_place)
		frame = folio_frame(bed->base);
	acted = event->act(bed);
	bed_judge(bed, event->sees);
	if (event->in_place)
		acted = acted && frame == folio_frame(bed->base);
	bed->report->acted += acted;
	bed->report->deferred += bed->was_deferred;
}

void bed_round(struct bed *bed)
{
	bed->old = bed->fresh + 1;
	bed->fresh = bed->old + 1;
	if (bed->event->round)
		bed->event->round(bed);
	else
		quiet_round(bed);
	bed->report->rounds++;
}

static void choose_cpus(struct bed *bed)
{
	cpu_set_t cpus;
	int all[CPU_SETSIZE];

	CPU_ZERO(&cpus);
	if (sched_getaffinity(0, sizeof(cpus), &cpus))
		die(EXIT_FAILED, "sched_getaffinity: %m");
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &cpus))
			all[bed->cpu_count++] = cpu;
	if (bed->cpu_count < 2)
		bed_skip(bed, "needs two CPUs");
	for (unsigned int i = 0; i < 4; i++)
		bed->cpus[i] = all[i < bed->cpu_count - 1 ? i : bed->cpu_count - 2];
	bed->cpus[3] = all[bed->cpu_count - 1];
	cpu_pin(bed->cpus[0]);
}

void bed_open(struct bed *bed, const struct event *event, const struct options *options, struct report *report)
{
	*bed = (struct bed){ .event = event, .options = options, .report = report,
			     .pages = event->pages ? event->pages : PAGES, .step = PAGE_BYTES,
			     .random = options->seed * 2 + 1, .fresh = 1 };
	if (event->machine && !options->machine)
		bed_skip(bed, "it would take something from the whole machine: --machine, in a guest");
	choose_cpus(bed);
	guard_faults();
	bed->reader = reader_new(bed->cpus[3]);
	moveset_init(&bed->set, NULL, MOST_PAGES * PAGE_BYTES, PAGE_BYTES);
	if (event->open)
		event->open(bed);
	else
		bed_map_anon(bed, bed->pages);
}

void bed_close(struct bed *bed)
{
	if (bed->event->close)
		bed->event->close(bed);
	reader_free(bed->reader);
	moveset_free(&bed->set);
}
