// SPDX-License-Identifier: GPL-2.0
#include "readers.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "util.h"

/* A prime, so that the steps of the readers have no common factor. */
#define STEP 7919

/* A cache line each, so that the readers do not slow each other down as they count. */
struct reader {
	_Alignas(64) _Atomic uint64_t passes;
	pthread_t thread;
};

static struct reader *readers;
static unsigned int reader_count;
static const struct target *target;
static size_t window_pages;
static atomic_uint window_now;
static atomic_bool stopping;

/*
 * Read each page once. Each reader has an order of its own: readers in step would fault at the same time at each page
 * that moves, and then the fault of the second one decides whether the page is promoted. An odd step modulo a power of
 * two visits each number below it; numbers past the window are skipped.
 */
static void read_window(struct reader *reader, uint64_t pass)
{
	size_t first = atomic_load(&window_now) * window_pages, count = window_pages / target->step, room = 1;
	size_t step = 2 * (STEP * (reader - readers + 1) + pass) + 1, at = pass;

	while (room < count)
		room *= 2;
	for (size_t i = 0; i < room; i++, at += step) {
		size_t page = first + (at & (room - 1)) * target->step;

		if ((at & (room - 1)) >= count)
			continue;
		target_check_word(target, page, (pass + page) % PAGE_WORDS);
	}
}

static void *read_on(void *argument)
{
	struct reader *reader = argument;

	while (!atomic_load_explicit(&stopping, memory_order_relaxed)) {
		read_window(reader, atomic_load(&reader->passes));
		atomic_fetch_add(&reader->passes, 1);
	}
	return NULL;
}

void readers_start(const struct target *memory, unsigned int count, unsigned int windows)
{
	readers = aligned_alloc(64, count * sizeof(*readers));
	if (!readers)
		die(EXIT_FAILED, "no memory for %u readers", count);
	atomic_store(&stopping, false);
	atomic_store(&window_now, 0);
	reader_count = count;
	target = memory;
	/* Even, so that holes are at the same places in each window. */
	window_pages = target->pages / windows & ~(size_t)1;
	for (unsigned int i = 0; i < count; i++) {
		readers[i] = (struct reader){ 0 };
		readers[i].thread = cpu_pin_start(i, read_on, &readers[i]);
	}
	for (unsigned int i = 0; i < count; i++)
		while (!atomic_load(&readers[i].passes))
			sleep_ns(1000000);
}

void readers_shift(unsigned int window)
{
	atomic_store(&window_now, window);
}

void readers_stop(void)
{
	atomic_store(&stopping, true);
	for (unsigned int i = 0; i < reader_count; i++)
		pthread_join(readers[i].thread, NULL);
	free(readers);
}
