// SPDX-License-Identifier: GPL-2.0
#include "folio.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/kernel-page-flags.h>
#include <numa.h>
#include <numaif.h>
#include <stdio.h>
#include <unistd.h>

#include "util.h"

#define LARGEST_THP_PAGES 512
#define PAGEMAP_PRESENT (UINT64_C(1) << 63)
#define PAGEMAP_PFN ((UINT64_C(1) << 55) - 1)
#define PAGEMAP_SOFT_DIRTY (UINT64_C(1) << 55)
#define NO_FRAME UINT64_MAX
#define FLAG(name) (UINT64_C(1) << KPF_##name)

char *folio_reserve(size_t bytes)
{
	size_t all = bytes + FOLIO_ALIGN;
	char *start = mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char *base;

	if (start == MAP_FAILED)
		die(EXIT_FAILED, "no address space for %zu bytes: %m", bytes);
	base = (char *)(((uintptr_t)start + FOLIO_ALIGN - 1) & ~(FOLIO_ALIGN - 1));
	/* The unaligned ends are given back. */
	if (base > start)
		munmap(start, base - start);
	if (start + all > base + bytes)
		munmap(base + bytes, start + all - base - bytes);
	return base;
}

void node_require(const char *option, int node)
{
	long long free_bytes;

	if (numa_available() < 0)
		die(EXIT_MISSING, "%s: this kernel has no NUMA system calls (CONFIG_NUMA)", option);
	if (node > numa_max_node() || numa_node_size64(node, &free_bytes) <= 0)
		die(EXIT_MISSING, "%s: node %d has no memory; the highest node is %d", option, node,
		    numa_max_node());
}

uint64_t nodes_free_kb(void)
{
	FILE *zones = fopen("/proc/zoneinfo", "re");
	uint64_t pages = 0, count;
	char line[256];

	if (!zones)
		die(EXIT_MISSING, "cannot read /proc/zoneinfo: %m");
	while (fgets(line, sizeof(line), zones)) {
		/* "pages free" is a line of each zone, "count:" one of each CPU's lists. */
		if (sscanf(line, "  pages free %" SCNu64, &count) == 1 ||
		    sscanf(line, " count: %" SCNu64, &count) == 1)
			pages += count;
	}
	fclose(zones);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

uint64_t node_free_kb(int node)
{
	char path[64], line[128];
	uint64_t free_kb = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/meminfo", node);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Node %*d MemFree: %" SCNu64, &free_kb) == 1)
			break;
	if (file)
		fclose(file);
	return free_kb;
}

void node_bind(void *memory, size_t bytes, int node)
{
	struct bitmask *nodes = numa_allocate_nodemask();

	numa_bitmask_setbit(nodes, node);
	if (mbind(memory, bytes, MPOL_BIND, nodes->maskp, nodes->size + 1, 0))
		die(EXIT_FAILED, "mbind to node %d: %m", node);
	numa_free_nodemask(nodes);
}

static int open_or_die(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		die(EXIT_MISSING, "cannot see folio sizes: %s: %m (needs root and CONFIG_PROC_PAGE_MONITOR)", path);
	return fd;
}

static size_t read_words(int fd, uint64_t *words, uint64_t index, size_t count)
{
	ssize_t got = pread(fd, words, count * sizeof(*words), index * sizeof(*words));

	return got < 0 ? 0 : got / sizeof(*words);
}

static uint64_t pagemap_entry(int pagemap, const void *address)
{
	uint64_t entry = 0;

	read_words(pagemap, &entry, (uintptr_t)address / PAGE_BYTES, 1);
	return entry;
}

/* NO_FRAME if no page is mapped at the address. 0 is a frame number where memory starts at 0. */
static uint64_t frame_of(int pagemap, const void *address)
{
	uint64_t entry = pagemap_entry(pagemap, address);

	return entry & PAGEMAP_PRESENT ? entry & PAGEMAP_PFN : NO_FRAME;
}

/*
 * Pages of the folio that begins at a frame, `most` or fewer; 0 if the frame is in the middle of a folio. *flags are
 * those of the first page.
 */
static size_t pages_from(int kpageflags, uint64_t frame, size_t most, uint64_t *flags)
{
	uint64_t words[LARGEST_THP_PAGES + 1];
	size_t pages = 0, got, i;

	do {
		got = most - pages < ARRAY_SIZE(words) ? most - pages : ARRAY_SIZE(words);
		got = read_words(kpageflags, words, frame + pages, got);
		if (!pages)
			*flags = got ? words[0] : 0;
		for (i = 0; i < got && !(words[i] & FLAG(COMPOUND_TAIL)) == !pages; i++)
			pages++;
	} while (got && i == got && pages < most);
	return pages;
}

static void count_folio(int pagemap, int kpageflags, const char *address, size_t folio_bytes,
			struct folio_census *census)
{
	uint64_t frame = frame_of(pagemap, address), flags;
	size_t pages;

	census->asked++;
	if (frame == NO_FRAME) {
		census->absent++;
		return;
	}
	/* One more than the folio should have, to see whether it is larger. */
	pages = pages_from(kpageflags, frame, folio_bytes / PAGE_BYTES + 1, &flags);
	if (flags & FLAG(SWAPCACHE))
		census->swapcache++;
	/* Its last page must be mapped here, too, or only its head belongs to this memory. */
	if (pages * PAGE_BYTES == folio_bytes &&
	    frame_of(pagemap, address + folio_bytes - PAGE_BYTES) == frame + pages - 1)
		census->exact++;
	else if (!census->seen_bytes)
		census->seen_bytes = pages * PAGE_BYTES;
}

struct folio_census folio_census(const char *base, size_t bytes, size_t folio_bytes)
{
	int pagemap = open_or_die("/proc/self/pagemap"), kpageflags = open_or_die("/proc/kpageflags");
	struct folio_census census = { 0 };

	for (size_t at = 0; at < bytes; at += folio_bytes)
		count_folio(pagemap, kpageflags, base + at, folio_bytes, &census);
	close(pagemap);
	close(kpageflags);
	return census;
}

uint64_t folio_frame(const void *address)
{
	int pagemap = open_or_die("/proc/self/pagemap");
	uint64_t frame = frame_of(pagemap, address);

	close(pagemap);
	return frame;
}

bool folio_soft_dirty(const void *address)
{
	int pagemap = open_or_die("/proc/self/pagemap");
	uint64_t entry = pagemap_entry(pagemap, address);

	close(pagemap);
	return entry & PAGEMAP_SOFT_DIRTY;
}

size_t folio_first_absent(const void *address, size_t pages)
{
	int pagemap = open_or_die("/proc/self/pagemap");
	uint64_t entries[LARGEST_THP_PAGES];
	size_t got = read_words(pagemap, entries, (uintptr_t)address / PAGE_BYTES, pages), i = 0;

	while (i < got && entries[i] & PAGEMAP_PRESENT)
		i++;
	close(pagemap);
	return i < got ? i : pages;
}

static uint64_t frame_word(const char *path, uint64_t frame)
{
	int fd = open_or_die(path);
	uint64_t word = 0;

	read_words(fd, &word, frame, 1);
	close(fd);
	return word;
}

uint64_t folio_flags(const void *address)
{
	uint64_t frame = folio_frame(address);

	return frame == NO_FRAME ? 0 : frame_word("/proc/kpageflags", frame);
}

void folio_describe(const char *address, char *text, size_t size)
{
	uint64_t frame = folio_frame(address);

	if (frame != NO_FRAME)
		snprintf(text, size,
			 "frame 0x%" PRIx64 ", kpageflags 0x%" PRIx64 ", mapped %" PRIu64 " times",
			 frame, frame_word("/proc/kpageflags", frame),
			 frame_word("/proc/kpagecount", frame));
	else
		snprintf(text, size, "not mapped");
}

void stamp_write(void *memory, uint32_t page, uint32_t generation)
{
	/* volatile: other threads and the kernel read this memory, so each word must be stored once, in order. */
	volatile uint64_t *words = memory;

	for (uint32_t i = 0; i < PAGE_WORDS; i++)
		words[i] = stamp_word(page, generation, i);
}

bool stamp_check(const void *memory, uint32_t page, uint32_t generation, struct mismatch *wrong)
{
	const volatile uint64_t *words = memory;

	for (uint32_t i = 0; i < PAGE_WORDS; i++) {
		uint64_t found = words[i];
		uint64_t expected = stamp_word(page, generation, i);

		if (found != expected) {
			*wrong = (struct mismatch){ page, i, expected, found };
			return false;
		}
	}
	return true;
}

void stamp_describe(uint64_t word, char *text, size_t size)
{
	uint32_t generation = word >> 9 & STAMP_GENERATIONS;

	if (!generation)
		snprintf(text, size, "no stamp (0x%016" PRIx64 ")", word);
	else
		snprintf(text, size, "page %u generation %u word %u (0x%016" PRIx64 ")", (unsigned int)(word >> 40),
			 generation - 1, (unsigned int)(word % PAGE_WORDS), word);
}
