// SPDX-License-Identifier: GPL-2.0
#include "target.h"

#include <fcntl.h>
#include <numa.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "folio.h"
#include "util.h"

/* All pages hold the same generation: they are written once. */
#define GENERATION 0

const char *const target_kind_names[] = {
	[TARGET_FILE] = "file", [TARGET_ANON] = "anon", [TARGET_BOTH] = "both", NULL,
};

static char *page_at(const struct target *target, size_t page)
{
	return target->base + page * PAGE_BYTES;
}

static void *map_fixed(void *at, size_t bytes, int protection, int flags, int fd)
{
	void *memory = mmap(at, bytes, protection, flags | (at ? MAP_FIXED : 0), fd, 0);

	if (memory == MAP_FAILED)
		die(EXIT_FAILED, "cannot map %zu bytes: %m", bytes);
	return memory;
}

static void map_anon(struct target *target, size_t first, size_t end, int node)
{
	size_t bytes = (end - first) * PAGE_BYTES;
	char *base = page_at(target, first);

	map_fixed(base, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	/* Fails on a kernel without THP, where all folios are single pages anyway. */
	madvise(base, bytes, MADV_NOHUGEPAGE);
	node_bind(base, bytes, node);
	for (size_t page = first; page < end; page++)
		stamp_write(page_at(target, page), page, GENERATION);
	for (size_t page = first + 1; target->step > 1 && page < end; page += target->step)
		if (madvise(page_at(target, page), PAGE_BYTES, MADV_DONTNEED))
			die(EXIT_FAILED, "madvise(MADV_DONTNEED): %m");
	if (mprotect(base, bytes, PROT_READ))
		die(EXIT_FAILED, "mprotect: %m");
}

static void write_file(const struct target *target, const char *path, size_t end)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	char *content = aligned_alloc(PAGE_BYTES, PAGE_BYTES);

	if (fd < 0 || !content)
		die(EXIT_USAGE, "--file %s: %m", path);
	for (size_t page = 0; page < end; page++) {
		stamp_write(content, page, GENERATION);
		if (pwrite(fd, content, PAGE_BYTES, page * PAGE_BYTES) != (ssize_t)PAGE_BYTES)
			die(EXIT_FAILED, "writing %s: %m", path);
	}
	for (size_t page = 1; target->step > 1 && page < end; page += target->step)
		if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, page * PAGE_BYTES, PAGE_BYTES))
			die(EXIT_MISSING, "%s: fallocate cannot punch holes: %m", path);
	/* Writeback now, because later it would make pages busy at random. */
	if (fsync(fd) || close(fd))
		die(EXIT_FAILED, "%s: %m", path);
	free(content);
}

/* The page cache follows the policy of the task that fills it. */
static void map_file(struct target *target, size_t end, int node, const char *path)
{
	int fd;

	numa_set_preferred(node);
	write_file(target, path, end);
	numa_set_localalloc();
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		die(EXIT_FAILED, "%s: %m", path);
	map_fixed(target->base, end * PAGE_BYTES, PROT_READ, MAP_SHARED, fd);
	close(fd);
	unlink(path);
}

void target_open(struct target *target, enum target_kind kind, size_t bytes, int node, const char *file,
		 bool holes)
{
	size_t pages = bytes / PAGE_BYTES;
	size_t of_file = kind == TARGET_FILE ? pages : kind == TARGET_BOTH ? pages / 2 : 0;

	*target = (struct target){ .bytes = bytes, .pages = pages, .step = holes ? 2 : 1 };
	target->base = map_fixed(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
	if (of_file)
		map_file(target, of_file, node, file);
	if (of_file < pages)
		map_anon(target, of_file, pages, node);
	target_verify(target);
}

void target_close(struct target *target)
{
	munmap(target->base, target->bytes);
}

void target_check_word(const struct target *target, size_t page, size_t word)
{
	uint64_t found = ((const volatile uint64_t *)page_at(target, page))[word];
	char text[80];

	if (found == stamp_word(page, GENERATION, word))
		return;
	stamp_describe(found, text, sizeof(text));
	die(EXIT_FAILED, "wrong byte in page %zu at offset %zu: found %s", page, word * sizeof(found), text);
}

void target_verify(const struct target *target)
{
	for (size_t page = 0; page < target->pages; page += target->step)
		for (size_t word = 0; word < PAGE_WORDS; word++)
			target_check_word(target, page, word);
}
