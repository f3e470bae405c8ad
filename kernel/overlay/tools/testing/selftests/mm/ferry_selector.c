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
#include "ferry_move.h"

#define BYTES		(8UL << 20)
#define NODE		"/sys/devices/system/node/node"
#define ATTEMPTS	5
#define HUGEPAGES	"/hugepages/hugepages-2048kB/"

static const char * const nr_hugepages[] = {
	NODE "0" HUGEPAGES "nr_hugepages", NODE "1" HUGEPAGES "nr_hugepages",
};

FIXTURE(ferry) {
	struct saved migrator;
	struct saved batch_max_us;
	struct saved hugepages[2];
};

FIXTURE_SETUP(ferry)
{
	if (geteuid())
		SKIP(return, "needs root");
	if (change_file("migrator", "off", &self->migrator))
		SKIP(return, "no " ROOT ": kernel without CONFIG_FERRY");
	/* A slow machine must not end the batches early. */
	ASSERT_EQ(change_file("batch_max_us", "1000000", &self->batch_max_us),
		  0);
}

FIXTURE_TEARDOWN(ferry)
{
	restore_file("migrator", &self->migrator);
	restore_file("batch_max_us", &self->batch_max_us);
	for (int node = 0; node < 2; node++)
		restore_file(nr_hugepages[node], &self->hugepages[node]);
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

/* Add as many hugetlb folios to a node's as the memory has. */
static bool add_hugepages(const char *name, struct saved *saved)
{
	long long wanted = number(name) + (BYTES >> 21);
	char value[32];

	snprintf(value, sizeof(value), "%lld", wanted);
	return !change_file(name, value, saved) && number(name) == wanted;
}

static long long batches_of(const char *migrator, const char *counter)
{
	char path[128];

	snprintf(path, sizeof(path), "stats/%s/%s", migrator, counter);
	return number(path);
}

/* Memory that moves there and back keeps what was written before each move. */
static void check_moves(struct __test_metadata *_metadata, enum memory kind)
{
	size_t page = sysconf(_SC_PAGESIZE), nr = BYTES / page;
	uint64_t *memory = map_memory(kind);
	size_t wrong = 0;

	ASSERT_NE(memory, MAP_FAILED);
	for (unsigned int round = 0; round < 4; round++) {
		for (size_t i = 0; i < BYTES / sizeof(*memory); i++)
			memory[i] = word_at(i, round);
		EXPECT_EQ(move_pages_to(memory, nr, page, (round + 1) % 2,
					MPOL_MF_MOVE), nr);
		for (size_t i = 0; i < BYTES / sizeof(*memory); i++)
			wrong += memory[i] != word_at(i, round);
	}
	EXPECT_EQ(wrong, 0);
	munmap(memory, BYTES);
}

/*
 * mtcopy rejects batches while no CPU is idle, and rests after that. So a
 * migrator that has rejected all batches may move more of them.
 */
static void check_migrator(struct __test_metadata *_metadata, const char *name,
			   enum memory kind)
{
	long long copied = batches_of(name, "batches");
	long long rejected = batches_of(name, "rejected");

	for (int i = 0; i < ATTEMPTS; i++) {
		check_moves(_metadata, kind);
		if (batches_of(name, "batches") > copied)
			return;
	}
	TH_LOG("%s only rejected", name);
	EXPECT_GT(batches_of(name, "rejected"), rejected);
}

static void check_migrators(struct __test_metadata *_metadata, enum memory kind)
{
	char list[256], *word, *next = list;

	ASSERT_EQ(read_file("migrator", list, sizeof(list)), 0);
	while ((word = strsep(&next, " []\n"))) {
		if (!*word)
			continue;
		if (write_file("migrator", word) == -ENODEV) {
			TH_LOG("%s has no device", word);
			continue;
		}
		if (strcmp(word, "off"))
			check_migrator(_metadata, word, kind);
		else
			check_moves(_metadata, kind);
	}
}

TEST_F_TIMEOUT(ferry, each_migrator_keeps_content, 600)
{
	if (access(NODE "1", F_OK))
		SKIP(return, "needs two memory nodes");
	check_migrators(_metadata, BASE_PAGES);
	check_migrators(_metadata, THP);
}

TEST_F_TIMEOUT(ferry, each_migrator_keeps_hugetlb, 600)
{
	for (int node = 0; node < 2; node++)
		if (!add_hugepages(nr_hugepages[node], &self->hugepages[node]))
			SKIP(return, "needs hugetlb folios on two nodes");
	check_migrators(_metadata, HUGETLB);
	check_migrators(_metadata, HUGETLB_FILE);
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
