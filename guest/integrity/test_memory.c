// SPDX-License-Identifier: GPL-2.0
#include "test_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "cmdline.h"
#include "folio.h"
#include "hugetlb.h"
#include "report.h"
#include "sysfs.h"

#define DISK_NAME "integrity.pages"

static const char *const area_names[MOST_AREAS] = { "4k", "mergeable", "64k", "2m", "hugetlb", "shmem", "disk" };

bool area_known(const char *name)
{
	for (size_t i = 0; i < MOST_AREAS; i++)
		if (!strcmp(area_names[i], name))
			return true;
	return false;
}

static bool wanted(const struct options *options, const char *name)
{
	return !options->areas || cmdline_in_list(options->areas, name);
}

size_t area_bytes(const struct options *options)
{
	size_t count = 0;

	for (size_t i = 0; i < MOST_AREAS; i++)
		count += wanted(options, area_names[i]);
	return options->bytes / count / FOLIO_ALIGN * FOLIO_ALIGN;
}

uint32_t area_identity(const struct area *area, uint32_t index)
{
	return area->first + (area->traits & AREA_MERGEABLE ? index % MERGEABLE_KINDS : index);
}

static char *map_aligned(size_t bytes, int fd)
{
	char *base = folio_reserve(bytes);
	int flags = MAP_FIXED | (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED);

	if (mmap(base, bytes, PROT_READ | PROT_WRITE, flags, fd, 0) == MAP_FAILED)
		die(EXIT_FAILED, "cannot map %zu bytes: %m", bytes);
	return base;
}

static void add_area(struct test_memory *mem, struct area area)
{
	size_t bytes = area_bytes(mem->options);
	const struct area *last = mem->count ? &mem->areas[mem->count - 1] : NULL;

	if (area.fd >= 0 && ftruncate(area.fd, bytes))
		die(EXIT_FAILED, "%s: no room for %zu bytes: %m", area.name, bytes);
	area.pages = bytes / PAGE_BYTES;
	area.first = last ? last->first + last->pages : 0;
	if (!area.base)
		area.base = map_aligned(bytes, area.fd);
	/* Fails on a kernel without THP, and on hugetlb folios, where no advice is needed. */
	madvise(area.base, bytes, area.folio_bytes > PAGE_BYTES ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	for (uint32_t i = 0; i < area.pages; i++)
		stamp_write(area_address(&area, i), area_identity(&area, i), 0);
	mem->areas[mem->count++] = area;
}

static void add_anon(struct test_memory *mem, const char *name, unsigned int traits)
{
	if (wanted(mem->options, name))
		add_area(mem, (struct area){ .name = name, .traits = AREA_ANON | traits,
					     .folio_bytes = PAGE_BYTES, .fd = -1 });
}

static void add_large(struct test_memory *mem, const char *name, size_t folio_bytes)
{
	if (!wanted(mem->options, name))
		return;
	if (thp_allow_only(folio_bytes, false))
		add_area(mem, (struct area){ .name = name, .traits = AREA_ANON | AREA_LARGE,
					     .folio_bytes = folio_bytes, .fd = -1 });
	else
		report_absent(name, "the kernel makes no anonymous folios of this size");
}

/* The second half becomes shared memory, whose folios belong to a file. */
static void share_half(char *base, size_t bytes)
{
	size_t private = (bytes / FOLIO_ALIGN + 1) / 2 * FOLIO_ALIGN;
	int flags = MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED | MAP_HUGETLB | __builtin_ctzl(FOLIO_ALIGN) << MAP_HUGE_SHIFT;

	if (private < bytes &&
	    mmap(base + private, bytes - private, PROT_READ | PROT_WRITE, flags, -1, 0) == MAP_FAILED)
		die(EXIT_FAILED, "cannot share %zu bytes of hugetlb folios: %m", bytes - private);
}

static void add_hugetlb(struct test_memory *mem)
{
	size_t bytes = area_bytes(mem->options);
	char *base;

	if (!wanted(mem->options, "hugetlb"))
		return;
	base = hugetlb_map(bytes, FOLIO_ALIGN, mem->options->nodes);
	if (!base) {
		report_absent("hugetlb", "no reserve of hugetlb folios on both nodes");
		return;
	}
	share_half(base, bytes);
	/* While a child shares a private folio, a write takes another one, and the reserve has none for that. */
	madvise(base, bytes, MADV_DONTFORK);
	add_area(mem, (struct area){ .name = "hugetlb", .traits = AREA_HUGETLB, .folio_bytes = FOLIO_ALIGN,
				     .base = base, .fd = -1 });
}

static void add_shmem(struct test_memory *mem)
{
	bool large;
	int fd;

	if (!wanted(mem->options, "shmem"))
		return;
	fd = memfd_create("integrity", MFD_CLOEXEC);
	/* Use large folios if the kernel can; single pages of shmem have good tests elsewhere. */
	large = thp_allow_only((size_t)64 << 10, true);
	if (fd < 0)
		report_absent("shmem", "no memfd_create(2)");
	else
		add_area(mem, (struct area){ .name = "shmem", .traits = AREA_SHMEM, .fd = fd,
					     .folio_bytes = large ? (size_t)64 << 10 : PAGE_BYTES });
}

static void require_disk(const char *dir)
{
	struct statfs fs;

	if (statfs(dir, &fs))
		die(EXIT_USAGE, "--file %s: %m", dir);
	if (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC)
		die(EXIT_USAGE, "--file %s is in memory, but must be on a disk file system", dir);
}

static void add_disk(struct test_memory *mem)
{
	const char *dir = mem->options->file;
	int dir_fd, fd;

	if (!wanted(mem->options, "disk"))
		return;
	if (!dir) {
		report_absent("disk", "no --file DIR");
		return;
	}
	require_disk(dir);
	dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	fd = openat(dir_fd, DISK_NAME, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		die(EXIT_USAGE, "--file %s: %m", dir);
	/* Without a name the file goes with its last descriptor, however the program ends. */
	unlinkat(dir_fd, DISK_NAME, 0);
	close(dir_fd);
	add_area(mem, (struct area){ .name = "disk", .traits = AREA_DISK, .fd = fd,
				     .folio_bytes = PAGE_BYTES });
}

void test_memory_open(struct test_memory *mem, const struct options *options)
{
	const struct area *last;

	mem->options = options;
	add_anon(mem, "4k", 0);
	add_anon(mem, "mergeable", AREA_MERGEABLE);
	add_large(mem, "64k", (size_t)64 << 10);
	add_large(mem, "2m", (size_t)2 << 20);
	add_hugetlb(mem);
	/* From here on a fault may allocate 64 KiB folios or single pages; a kernel without that size is fine. */
	thp_allow((size_t)64 << 10, false);
	add_shmem(mem);
	add_disk(mem);
	if (!mem->count)
		die(EXIT_MISSING, "none of the memory areas can be made here");
	last = &mem->areas[mem->count - 1];
	mem->generations = calloc(last->first + last->pages, sizeof(*mem->generations));
	if (!mem->generations)
		die(EXIT_FAILED, "no memory for the generations of pages");
}

void test_memory_close(struct test_memory *mem)
{
	for (size_t i = 0; i < mem->count; i++) {
		struct area *area = &mem->areas[i];

		if (area->traits & AREA_HUGETLB)
			hugetlb_unmap(area->base, area->pages * PAGE_BYTES, area->folio_bytes, mem->options->nodes);
		else
			munmap(area->base, area->pages * PAGE_BYTES);
		if (area->fd >= 0)
			close(area->fd);
	}
	free(mem->generations);
	mem->count = 0;
}
