// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/kernel/mm/migration: every file reads and writes as documented in
 * Documentation/ABI/testing/sysfs-kernel-mm-migration, and a value that a file
 * rejects changes nothing. Folios that move with each migrator keep their
 * content.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "ferry_knobs.h"

#define BYTES	(8UL << 20)
#define MOVE	2	/* MPOL_MF_MOVE */

FIXTURE(ferry) {
	char saved[256];
};

FIXTURE_SETUP(ferry)
{
	char list[256];

	if (geteuid())
		SKIP(return, "needs root");
	if (read_file("migrator", list, sizeof(list)))
		SKIP(return, "no " ROOT ": kernel without CONFIG_FERRY");
	snprintf(self->saved, sizeof(self->saved), "%s", selected(list));
}

FIXTURE_TEARDOWN(ferry)
{
	if (self->saved[0])
		write_file("migrator", self->saved);
}

/* The list ends in a newline and has off, kernel, and one word in brackets. */
TEST_F(ferry, list_has_one_selected)
{
	char list[256];

	ASSERT_EQ(read_file("migrator", list, sizeof(list)), 0);
	EXPECT_NE(strstr(list, "off"), NULL);
	EXPECT_NE(strstr(list, "kernel"), NULL);
	EXPECT_EQ(list[strlen(list) - 1], '\n');
	EXPECT_EQ(strchr(list, '['), strrchr(list, '['));
	EXPECT_NE(strchr(list, ']'), NULL);
}

TEST_F(ferry, select_and_off)
{
	char list[256];

	ASSERT_EQ(write_file("migrator", "kernel\n"), 0);
	ASSERT_EQ(read_file("migrator", list, sizeof(list)), 0);
	EXPECT_STREQ(selected(list), "kernel");
	ASSERT_EQ(write_file("migrator", "off"), 0);
	ASSERT_EQ(read_file("migrator", list, sizeof(list)), 0);
	EXPECT_STREQ(selected(list), "off");
}

TEST_F(ferry, unknown_migrator_changes_nothing)
{
	static const char * const bad[] = {
		"unknown", "", "kernel off", "KERNEL", "[off]",
	};
	char list[256];

	ASSERT_EQ(write_file("migrator", "kernel"), 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		/* Writing nothing never reaches the kernel. */
		if (bad[i][0])
			EXPECT_EQ(write_file("migrator", bad[i]), -EINVAL);
		ASSERT_EQ(read_file("migrator", list, sizeof(list)), 0);
		EXPECT_STREQ(selected(list), "kernel");
	}
}

TEST_F(ferry, limits)
{
	static const struct value values[] = {
		{ "batch_min_bytes", "-1", false },
		{ "batch_min_bytes", "many", false },
		{ "batch_min_bytes", "99999999999999999999", false },
		{ "batch_min_bytes", "1073741825", false },
		{ "batch_max_bytes", "-1", false },
		{ "batch_max_bytes", "many", false },
		{ "batch_max_bytes", "99999999999999999999", false },
		{ "batch_max_bytes", "1073741825", false },
		{ "batch_max_bytes", "0", false },
		{ "batch_max_us", "-1", false },
		{ "batch_max_us", "many", false },
		{ "batch_max_us", "99999999999999999999", false },
		{ "batch_max_us", "1073741825", false },
		{ "batch_max_us", "0", false },
		{ "batch_min_bytes", "0", true },
		{ "batch_min_bytes", "1073741824", true },
		{ "batch_max_bytes", "1073741824", true },
		{ "batch_max_us", "1", true },
		{ "batch_max_us", "1000000", true },
	};

	check_values(_metadata, values, ARRAY_SIZE(values));
}

TEST_F(ferry, mtcopy_knobs)
{
	static const struct value values[] = {
		{ "mtcopy/threads", "0", false },
		{ "mtcopy/threads", "65", false },
		{ "mtcopy/threads", "64", true },
		{ "mtcopy/nontemporal", "slow", false },
		{ "mtcopy/nontemporal", "never", true },
		{ "mtcopy/nontemporal", "always", true },
		{ "mtcopy/nontemporal", "auto", true },
	};
	char value[256];

	if (read_file("mtcopy/threads", value, sizeof(value)))
		SKIP(return, "mtcopy is not loaded");
	check_values(_metadata, values, ARRAY_SIZE(values));
}

/* A word of the memory: another one at each place, and in each round. */
static uint64_t word_at(size_t i, unsigned int round)
{
	return (i + 1) * 0x9e3779b97f4a7c15 + round;
}

/* Shared anonymous memory is that of a file. */
enum memory { BASE_PAGES, THP, HUGETLB, HUGETLB_FILE };

static uint64_t *map_memory(enum memory kind)
{
	int flags = kind == HUGETLB_FILE ? MAP_SHARED : MAP_PRIVATE;
	bool hugetlb = kind == HUGETLB || kind == HUGETLB_FILE;
	uint64_t *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
				flags | MAP_ANONYMOUS |
				(hugetlb ? MAP_HUGETLB : 0), -1, 0);

	if (memory != MAP_FAILED && !hugetlb)
		madvise(memory, BYTES,
			kind == THP ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	return memory;
}

/* Relative to ROOT, /sys/kernel/mm/migration. */
#define NR_HUGEPAGES	"../../../devices/system/node/node%u/hugepages/" \
			"hugepages-2048kB/nr_hugepages"

/* Reserve hugetlb folios for the memory on both nodes, or release them. */
static bool reserve_hugetlb(bool reserve)
{
	char path[128], value[32], wanted[32];
	bool done = true;

	snprintf(wanted, sizeof(wanted), "%lu", reserve ? BYTES >> 21 : 0);
	for (unsigned int node = 0; node < 2; node++) {
		snprintf(path, sizeof(path), NR_HUGEPAGES, node);
		done &= !write_file(path, wanted) &&
			!read_file(path, value, sizeof(value)) &&
			strtoul(value, NULL, 10) == strtoul(wanted, NULL, 10);
	}
	return done;
}

/* Move all pages to a node. Return how many are not there then, or -errno. */
static long move_memory(uint64_t *memory, int node)
{
	size_t size = sysconf(_SC_PAGESIZE), nr = BYTES / size;
	void **pages = calloc(nr, sizeof(*pages));
	int *nodes = calloc(nr, sizeof(*nodes));
	int *status = calloc(nr, sizeof(*status));
	long left = -ENOMEM;

	for (size_t i = 0; pages && nodes && i < nr; i++) {
		pages[i] = (char *)memory + i * size;
		nodes[i] = node;
	}
	if (pages && nodes && status)
		left = syscall(__NR_move_pages, 0, nr, pages, nodes, status,
			       MOVE) < 0 ? -errno : 0;
	/* The second page of a huge one has EBUSY there. Ask where they are. */
	if (left >= 0 &&
	    syscall(__NR_move_pages, 0, nr, pages, NULL, status, 0))
		left = -errno;
	for (size_t i = 0; left >= 0 && i < nr; i++)
		left += status[i] != node;
	free(pages);
	free(nodes);
	free(status);
	return left;
}

/* The batches that a migrator copied, or rejected. */
static long long batches_of(const char *migrator)
{
	static const char * const names[] = { "batches", "rejected" };
	char path[128], value[64];
	long long sum = 0;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "stats/%s/%s", migrator, names[i]);
		if (!read_file(path, value, sizeof(value)))
			sum += strtoll(value, NULL, 10);
	}
	return sum;
}

/* Memory that moves there and back keeps what was written before each move. */
static void check_moves(struct __test_metadata *_metadata, enum memory kind)
{
	uint64_t *memory = map_memory(kind);
	size_t wrong = 0;

	ASSERT_NE(memory, MAP_FAILED);
	for (unsigned int round = 0; round < 4; round++) {
		for (size_t i = 0; i < BYTES / sizeof(*memory); i++)
			memory[i] = word_at(i, round);
		EXPECT_EQ(move_memory(memory, (round + 1) % 2), 0);
		for (size_t i = 0; i < BYTES / sizeof(*memory); i++)
			wrong += memory[i] != word_at(i, round);
	}
	EXPECT_EQ(wrong, 0);
	munmap(memory, BYTES);
}

static void check_migrators(struct __test_metadata *_metadata,
			    const enum memory *kinds, size_t nr)
{
	char list[256], *word, *next = list;
	long long before;

	ASSERT_EQ(read_file("migrator", list, sizeof(list)), 0);
	while ((word = strsep(&next, " []\n"))) {
		if (!*word)
			continue;
		if (write_file("migrator", word) == -ENODEV) {
			TH_LOG("%s has no device", word);
			continue;
		}
		before = batches_of(word);
		for (size_t i = 0; i < nr; i++)
			check_moves(_metadata, kinds[i]);
		if (strcmp(word, "off"))
			EXPECT_GT(batches_of(word), before)
				TH_LOG("%s did not copy", word);
	}
}

TEST_F_TIMEOUT(ferry, each_migrator_keeps_content, 600)
{
	static const enum memory kinds[] = { BASE_PAGES, THP };

	if (access("/sys/devices/system/node/node1", F_OK))
		SKIP(return, "needs two memory nodes");
	check_migrators(_metadata, kinds, ARRAY_SIZE(kinds));
}

TEST_F_TIMEOUT(ferry, each_migrator_keeps_hugetlb, 600)
{
	static const enum memory anon[] = { HUGETLB };
	static const enum memory file[] = { HUGETLB_FILE };

	if (!reserve_hugetlb(true)) {
		reserve_hugetlb(false);
		SKIP(return, "needs hugetlb folios on two memory nodes");
	}
	check_migrators(_metadata, anon, ARRAY_SIZE(anon));
	check_migrators(_metadata, file, ARRAY_SIZE(file));
	EXPECT_TRUE(reserve_hugetlb(false));
}

TEST_F(ferry, counters_are_numbers)
{
	static const char * const names[] = {
		"batches", "folios", "bytes", "copy_ns", "fallbacks",
		"skipped_unsupported", "skipped_pinned", "skipped_small",
		"skipped_no_buffer", "rejected",
	};
	char path[64], value[256], *end;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "stats/kernel/%s", names[i]);
		ASSERT_EQ(read_file(path, value, sizeof(value)), 0);
		strtoull(value, &end, 10);
		EXPECT_STREQ(end, "\n");
		EXPECT_EQ(write_file(path, "0"), -EACCES);
	}
}

TEST_F(ferry, only_root_writes)
{
	ASSERT_EQ(seteuid(65534), 0);
	EXPECT_EQ(write_file("migrator", "kernel"), -EACCES);
	EXPECT_EQ(write_file("batch_max_bytes", "33554432"), -EACCES);
	ASSERT_EQ(seteuid(0), 0);
}

TEST_HARNESS_MAIN
