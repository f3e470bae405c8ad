// SPDX-License-Identifier: GPL-2.0
#include "touch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "folio.h"
#include "util.h"

/*
 * Each thread has a word of its own in each page, and remembers what it wrote there. The words of two threads are in
 * different cache lines.
 */
#define LINE_WORDS (64 / sizeof(uint64_t))
#define MAX_THREADS (PAGE_WORDS / LINE_WORDS)

struct toucher {
	const struct touched *touched;
	unsigned int number;
	uint64_t *written;	/* by page */
	uint64_t random;
	struct histogram histogram;
	pthread_t thread;
};

static struct toucher touchers[MAX_THREADS];
static atomic_bool stopping;

static void access_page(struct toucher *toucher, size_t page)
{
	volatile uint64_t *word = (uint64_t *)(toucher->touched->base + page * PAGE_BYTES);
	uint64_t seen, expected = toucher->written[page]++;

	word += toucher->number * LINE_WORDS;
	seen = *word;
	*word = seen + 1;
	if (seen != expected)
		die(EXIT_FAILED, "page %zu: thread %u wrote %lu and read %lu", page, toucher->number,
		    (unsigned long)expected, (unsigned long)seen);
}

static void *touch(void *argument)
{
	struct toucher *toucher = argument;

	while (!atomic_load_explicit(&stopping, memory_order_relaxed)) {
		uint64_t start = clock_ns();

		for (unsigned int i = 0; i < toucher->touched->request_pages; i++)
			access_page(toucher, xorshift64(&toucher->random) % toucher->touched->pages);
		histogram_add(&toucher->histogram, clock_ns() - start);
	}
	return NULL;
}

void touch_open(struct touched *touched, const struct options *options)
{
	if (options->threads > MAX_THREADS)
		die(EXIT_USAGE, "--threads: more than %zu", MAX_THREADS);
	*touched = (struct touched){ .pages = options->bytes / PAGE_BYTES, 
				      .threads = options->threads, .request_pages = options->request_pages };
	touched->base = mmap(NULL, options->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (touched->base == MAP_FAILED)
		die(EXIT_FAILED, "cannot map %zu bytes: %m", options->bytes);
	node_bind(touched->base, options->bytes, options->from);
	/* It fails on a kernel without THP, where all folios are single pages anyway. */
	(void)!madvise(touched->base, options->bytes, MADV_NOHUGEPAGE);
	for (size_t page = 0; page < touched->pages; page++)
		*(volatile char *)(touched->base + page * PAGE_BYTES) = 0;
	for (unsigned int i = 0; i < touched->threads; i++) {
		touchers[i] = (struct toucher){ .touched = touched, .number = i, .random = i + 1 };
		touchers[i].written = calloc(touched->pages, sizeof(*touchers[i].written));
		if (!touchers[i].written)
			die(EXIT_FAILED, "no memory for what %zu pages hold", touched->pages);
	}
}

void touch_start(const struct touched *touched)
{
	atomic_store(&stopping, false);
	for (unsigned int i = 0; i < touched->threads; i++) {
		touchers[i].histogram = (struct histogram){ 0 };
		/* The first CPU is left to the thread that moves memory. */
		touchers[i].thread = cpu_pin_start(i + 1, touch, &touchers[i]);
	}
}

void touch_stop(const struct touched *touched, struct histogram *histogram)
{
	atomic_store(&stopping, true);
	for (unsigned int i = 0; i < touched->threads; i++) {
		pthread_join(touchers[i].thread, NULL);
		histogram_merge(histogram, &touchers[i].histogram);
	}
}
