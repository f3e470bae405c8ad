// SPDX-License-Identifier: GPL-2.0
#include "memory.h"

#include <errno.h>
#include <fcntl.h>
#include <numa.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "folio.h"
#include "hugetlb.h"
#include "sysfs.h"
#include "util.h"

static void map(struct memory *memory)
{
	int flags = MAP_FIXED | (memory->fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED);

	memory->base = folio_reserve(memory->bytes);
	if (mmap(memory->base, memory->bytes, PROT_READ | PROT_WRITE, flags, memory->fd, 0) == MAP_FAILED)
		die(EXIT_FAILED, "cannot map %zu bytes: %m", memory->bytes);
	memory->content.base = memory->base;
	memory->content.bytes = memory->bytes;
}

static void open_anon_or_shmem(struct memory *memory, const struct options *options)
{
	bool shmem = options->kind == KIND_SHMEM, large = options->folio_bytes > PAGE_BYTES;

	if (shmem)
		memory->fd = memfd_create("movebench", MFD_CLOEXEC);
	if (shmem && (memory->fd < 0 || ftruncate(memory->fd, memory->bytes)))
		die(EXIT_MISSING, "no shared memory of %zu bytes: %m", memory->bytes);
	map(memory);
	node_bind(memory->base, memory->bytes, options->from);
	if (!thp_allow_only(options->folio_bytes, shmem))
		die(EXIT_MISSING, "this kernel makes no %s folios of %zu bytes: %m", shmem ? "shmem" : "anonymous",
		    options->folio_bytes);
	/* MADV_NOHUGEPAGE fails on a kernel without THP, where all folios are single pages anyway. */
	if (madvise(memory->base, memory->bytes, large ? MADV_HUGEPAGE : MADV_NOHUGEPAGE) && large)
		die(EXIT_MISSING, "madvise(MADV_HUGEPAGE): %m (CONFIG_TRANSPARENT_HUGEPAGE, CONFIG_ADVISE_SYSCALLS)");
	pattern_fill(&memory->content);
}

static void open_file(struct memory *memory, const struct options *options)
{
	char *folio = calloc(1, options->folio_bytes);

	memory->fd = open(options->file, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (memory->fd < 0)
		die(EXIT_USAGE, "--file %s: %m", options->file);
	if (!folio)
		die(EXIT_FAILED, "no memory for one folio");
	/* The page cache follows the policy of the task that fills it. */
	numa_set_preferred(options->from);
	/* A file system chooses a folio's size by the size and the alignment of the write that allocates it. */
	for (size_t at = 0; at < memory->bytes; at += options->folio_bytes)
		if (pwrite(memory->fd, folio, options->folio_bytes, at) != (ssize_t)options->folio_bytes)
			die(EXIT_FAILED, "writing %s: %m", options->file);
	free(folio);
	map(memory);
	pattern_fill(&memory->content);
	/* Writeback now, because later it would make pages busy at random. */
	if (fsync(memory->fd))
		die(EXIT_FAILED, "fsync %s: %m", options->file);
}

static void open_swapcache(struct memory *memory, const struct options *options)
{
	/* Twice the size: the kernel drops the swap cache once half of the swap space is in use. */
	const char *missing = swapdev_open(&memory->swap, 3 * memory->bytes);

	if (missing)
		die(EXIT_MISSING, "--kind swapcache: %s", missing);
	open_anon_or_shmem(memory, options);
	if (madvise(memory->base, memory->bytes, MADV_PAGEOUT))
		die(EXIT_MISSING, "madvise(MADV_PAGEOUT): %m");
	/* A read fault brings a page back and leaves it in the swap cache as well. */
	if (madvise(memory->base, memory->bytes, MADV_POPULATE_READ))
		die(EXIT_FAILED, "cannot read the memory back from swap: %m");
}

static void open_hugetlb(struct memory *memory, const struct options *options)
{
	const int nodes[] = { options->from, options->to };

	memory->base = hugetlb_map(memory->bytes, options->folio_bytes, nodes);
	if (!memory->base)
		die(EXIT_MISSING, "nodes %d and %d cannot reserve %zu bytes each in hugetlb folios of %zu bytes",
		    options->from, options->to, memory->bytes, options->folio_bytes);
	memory->content.base = memory->base;
	memory->content.bytes = memory->bytes;
	node_bind(memory->base, memory->bytes, options->from);
	pattern_fill(&memory->content);
}

void memory_open(struct memory *memory, const struct options *options)
{
	static void (*const open_kind[])(struct memory *, const struct options *) = {
		[KIND_ANON] = open_anon_or_shmem, [KIND_SHMEM] = open_anon_or_shmem,
		[KIND_FILE] = open_file, [KIND_SWAPCACHE] = open_swapcache,
		[KIND_HUGETLB] = open_hugetlb,
	};

	*memory = (struct memory){ .bytes = options->bytes * order_step(options->order), .fd = -1 };
	open_kind[options->kind](memory, options);
}

bool memory_must_renew(const struct options *options)
{
	return options->kind == KIND_ANON && options->folio_bytes > PAGE_BYTES &&
	       options->folio_bytes < FOLIO_ALIGN;
}

void memory_renew(struct memory *memory, int node)
{
	pattern_verify(&memory->content);
	if (madvise(memory->base, memory->bytes, MADV_DONTNEED))
		die(EXIT_FAILED, "madvise(MADV_DONTNEED): %m");
	node_bind(memory->base, memory->bytes, node);
	pattern_fill(&memory->content);
}

void memory_protect(struct memory *memory)
{
	if (mprotect(memory->base, memory->bytes, PROT_READ))
		die(EXIT_FAILED, "mprotect(PROT_READ): %m");
}

void memory_close(struct memory *memory, const struct options *options)
{
	munmap(memory->base, memory->bytes);
	if (memory->fd >= 0)
		close(memory->fd);
	if (options->kind == KIND_FILE)
		unlink(options->file);
	if (!swapdev_close(&memory->swap))
		die(EXIT_FAILED, "swapoff: %m");
}

void memory_require_folios(const struct memory *memory, const struct options *options, const char *when,
			   enum exit_status status)
{
	struct folio_census census = folio_census(memory->base, memory->bytes, options->folio_bytes);

	if (census.exact != census.asked)
		die(status,
		    "%s, %zu of %zu folios are not of %zu bytes (%zu not mapped; the first other has %zu bytes)",
		    when, census.asked - census.exact, census.asked, options->folio_bytes, census.absent,
		    census.seen_bytes);
	if (options->kind == KIND_SWAPCACHE && census.swapcache != census.asked)
		die(EXIT_FAILED, "%s, %zu of %zu pages are not in the swap cache",
		    when, census.asked - census.swapcache, census.asked);
}
