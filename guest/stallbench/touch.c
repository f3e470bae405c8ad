// SPDX-License-Identifier: GPL-2.0
#include "touch.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include "folio.h"
#include "util.h"

/*
 * Each thread has a word of its own in each page, and remembers what it wrote there. The words of two threads are in
 * different cache lines.
 */
#define LINE_WORDS (64 / sizeof(uint64_t))
#define MAX_THREADS (PAGE_WORDS / LINE_WORDS)

/* What a thread faults while other memory moves. */
#define FAULTED_BYTES ((size_t)4 << 20)

struct toucher {
	const struct touched *touched;
	unsigned int number;
	uint64_t *written;	/* by page */
	uint64_t random;
	struct histogram histogram;
	uint64_t requests;
	pthread_t thread;
};

static struct toucher touchers[MAX_THREADS];
static atomic_bool stopping;

/* Read a page of the file and check that it is the one. */
static void read_page(const struct touched *touched, size_t page)
{
	uint64_t words[PAGE_WORDS];
	ssize_t got = pread(touched->fd, words, PAGE_BYTES, page * PAGE_BYTES);

	if (got != PAGE_BYTES)
		die(EXIT_FAILED, "page %zu: pread: %m", page);
	if (words[0] != page || words[PAGE_WORDS - 1] != page)
		die(EXIT_FAILED, "page %zu: read %lu and %lu", page, (unsigned long)words[0],
		    (unsigned long)words[PAGE_WORDS - 1]);
}

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

/* Free the page, so that the next access faults and finds zeros. */
static void discard_page(struct toucher *toucher, size_t page)
{
	if (madvise(toucher->touched->base + page * PAGE_BYTES, PAGE_BYTES, MADV_DONTNEED))
		die(EXIT_FAILED, "page %zu: madvise(MADV_DONTNEED): %m", page);
	toucher->written[page] = 0;
}

/* How often the calling thread slept. */
static long sleeps(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw;
}

static void make_request(struct toucher *toucher)
{
	const struct touched *touched = toucher->touched;

	for (unsigned int i = 0; i < touched->request_pages; i++) {
		size_t page = xorshift64(&toucher->random) % touched->pages;

		if (touched->faults)
			discard_page(toucher, page);
		if (touched->fd < 0)
			access_page(toucher, page);
		else
			read_page(touched, page);
	}
}

static void *touch(void *argument)
{
	struct toucher *toucher = argument;
	bool waits = toucher->touched->waits;

	while (!atomic_load_explicit(&stopping, memory_order_relaxed)) {
		long slept = waits ? sleeps() : 0;
		uint64_t start = clock_ns(), ns;

		make_request(toucher);
		ns = clock_ns() - start;
		toucher->requests++;
		if (!waits || sleeps() != slept)
			histogram_add(&toucher->histogram, ns);
	}
	return NULL;
}

/* A file of huge pages in a tmpfs of its own, which nothing else can see and which ends with the program. */
static int open_tmpfs(size_t bytes)
{
	char directory[] = "/tmp/stallbench.XXXXXX", path[64];
	int fd;

	if (!mkdtemp(directory) || mount("stallbench", directory, "tmpfs", 0, "huge=always"))
		die(EXIT_MISSING, "no tmpfs with huge=always: %m");
	snprintf(path, sizeof(path), "%s/file", directory);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, bytes))
		die(EXIT_FAILED, "%s: %m", path);
	umount2(directory, MNT_DETACH);
	rmdir(directory);
	return fd;
}

static void map_memory(struct touched *touched, const struct options *options)
{
	bool file = options->memory == MEMORY_TMPFS, base = options->memory == MEMORY_BASE || touched->faults;
	size_t bytes = touched->pages * PAGE_BYTES;

	touched->fd = file ? open_tmpfs(bytes) : -1;
	/* A multiple of the size of any folio, so that it can consist of huge ones. */
	touched->base = mmap(folio_reserve(bytes), bytes, PROT_READ | PROT_WRITE,
			     MAP_FIXED | (file ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS), touched->fd, 0);
	if (touched->base == MAP_FAILED)
		die(EXIT_FAILED, "cannot map %zu bytes: %m", bytes);
	node_bind(touched->base, bytes, options->from);
	/* It fails on a kernel without THP, where all folios are single pages anyway. */
	(void)!madvise(touched->base, bytes, base ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
}

/* Write each page: as read_page() expects it, else zeros. */
static void fill_memory(const struct touched *touched)
{
	for (size_t page = 0; page < touched->pages; page++) {
		volatile uint64_t *words = (uint64_t *)(touched->base + page * PAGE_BYTES);

		words[0] = touched->fd < 0 ? 0 : page;
		words[PAGE_WORDS - 1] = words[0];
	}
}

void touch_open(struct touched *touched, const struct options *options)
{
	if (options->threads > MAX_THREADS)
		die(EXIT_USAGE, "--threads: more than %zu", MAX_THREADS);
	if (touched->base) {
		munmap(touched->base, touched->pages * PAGE_BYTES);
		if (touched->fd >= 0)
			close(touched->fd);
	}
	*touched = (struct touched){ .waits = options->waits, .faults = options->memory == MEMORY_HUGETLB,
				      .threads = options->threads, .request_pages = options->request_pages };
	touched->pages = (touched->faults ? FAULTED_BYTES : options->bytes) / PAGE_BYTES;
	map_memory(touched, options);
	fill_memory(touched);
	for (unsigned int i = 0; i < touched->threads; i++) {
		free(touchers[i].written);
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
		touchers[i].requests = 0;
		/* The first CPU is left to the thread that moves memory. */
		touchers[i].thread = cpu_pin_start(i + 1, touch, &touchers[i]);
	}
}

uint64_t touch_stop(const struct touched *touched, struct histogram *histogram)
{
	uint64_t requests = 0;

	atomic_store(&stopping, true);
	for (unsigned int i = 0; i < touched->threads; i++) {
		pthread_join(touchers[i].thread, NULL);
		histogram_merge(histogram, &touchers[i].histogram);
		requests += touchers[i].requests;
	}
	return requests;
}
