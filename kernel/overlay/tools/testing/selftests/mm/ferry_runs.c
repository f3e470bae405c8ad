// SPDX-License-Identifier: GPL-2.0
/*
 * Migrate two equal areas of base pages, one as single folios and one in runs.
 * Afterwards user space must see the same of both: contents, page flags, map
 * counts, memory cgroup, the bits of the PTEs, and statistics of the nodes.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ferry_knobs.h"
#include "ferry_move.h"

#define STATS		ROOT "stats/reasons/syscall_or_cpuset/"
#define LOCKED		STATS "locked/"
#define LRU_GEN		"/sys/kernel/mm/lru_gen/enabled"
#define ZRAM		"/sys/block/zram0/"
#define PAGES		160
#define ATTEMPTS	5

#define PAGEMAP_FLAGS	(~((UINT64_C(1) << 55) - 1))
#define KPF_LOCKED	UINT64_C(1)
#define KPF_SWAPCACHE	(UINT64_C(1) << 13)

enum kind { ANON, FORKED, SHMEM, DISK_FILE, SWAP_CACHE };

/* What user space sees of a page. */
struct page {
	uint64_t pagemap;
	uint64_t flags;
	uint64_t mapcount;
	uint64_t memcg;
	uint32_t content;
};

static const char *const node_stats[] = {
	"nr_inactive_anon", "nr_active_anon", "nr_inactive_file",
	"nr_active_file", "nr_unevictable", "nr_isolated_anon",
	"nr_isolated_file", "nr_anon_pages", "nr_mapped", "nr_file_pages",
	"nr_dirty", "nr_shmem", "nr_swapcached",
};

#define NODE_STATS	ARRAY_SIZE(node_stats)

/* What user space sees of an area, and how migration changed the nodes. */
struct result {
	struct page pages[PAGES];
	long referenced_kb, private_dirty_kb, shared_dirty_kb;
	long write_faults;
	long change[2][NODE_STATS];
};

static size_t page_size;

/* The number behind the first line that starts with a word; -1 if none. */
static long read_number(const char *path, const char *word)
{
	size_t length = strlen(word);
	FILE *file = fopen(path, "r");
	char line[256];
	long value = -1;

	while (file && value < 0 && fgets(line, sizeof(line), file))
		if (!strncmp(line, word, length))
			value = strtol(line + length, NULL, 10);
	if (file)
		fclose(file);
	return value;
}

static uint64_t read_u64(const char *path, uint64_t index)
{
	int fd = open(path, O_RDONLY);
	uint64_t value = 0;

	if (fd < 0 || pread(fd, &value, 8, index * 8) != 8)
		value = UINT64_MAX;
	if (fd >= 0)
		close(fd);
	return value;
}

/* The sum of a field of smaps over all VMAs that begin in an area. */
static long sum_smaps(const char *area, const char *field)
{
	unsigned long start = (unsigned long)area, from, to;
	FILE *file = fopen("/proc/self/smaps", "r");
	size_t length = strlen(field);
	bool inside = false;
	char line[256];
	long sum = 0;

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			inside = from >= start &&
				 from < start + PAGES * page_size;
		else if (inside && !strncmp(line, field, length))
			sum += strtol(line + length, NULL, 10);
	}
	if (file)
		fclose(file);
	return sum;
}

static uint32_t load(const char *address)
{
	return __atomic_load_n((const uint32_t *)address, __ATOMIC_RELAXED);
}

static void store(char *address, uint32_t value)
{
	__atomic_store_n((uint32_t *)address, value, __ATOMIC_RELAXED);
}

static void read_page(const char *address, struct page *page)
{
	uint64_t index = (unsigned long)address / page_size;
	uint64_t entry = read_u64("/proc/self/pagemap", index);
	uint64_t pfn = entry & ~PAGEMAP_FLAGS;

	page->pagemap = entry & PAGEMAP_FLAGS;
	page->flags = read_u64("/proc/kpageflags", pfn) & ~KPF_LOCKED;
	page->mapcount = read_u64("/proc/kpagecount", pfn);
	page->memcg = read_u64("/proc/kpagecgroup", pfn);
}

static void read_nodes(long stats[2][NODE_STATS])
{
	char path[64], word[32];

	/* Adds what the CPUs have counted. */
	write_file("/proc/sys/vm/stat_refresh", "1");
	for (int node = 0; node < 2; node++)
		for (size_t i = 0; i < NODE_STATS; i++) {
			snprintf(path, sizeof(path),
				 "/sys/devices/system/node/node%d/vmstat",
				 node);
			snprintf(word, sizeof(word), "%s ", node_stats[i]);
			stats[node][i] = read_number(path, word);
		}
}

static long move(char *area, int node)
{
	return move_pages_to(area, PAGES, page_size, node, MPOL_MF_MOVE_ALL);
}

static void fill(char *area)
{
	for (int i = 0; i < PAGES; i++)
		store(area + i * page_size, i + 1);
}

/* Make a zram device of 64 MiB swap, unless it is in use. */
static int swap_on(void)
{
	uint32_t header[3] = { 1, (64 << 20) / page_size - 1, 0 };
	int fd, err;

	if (read_number(ZRAM "disksize", "") > 0)
		return -EBUSY;
	err = write_file(ZRAM "disksize", "64M");
	if (err)
		return err;
	fd = open("/dev/zram0", O_WRONLY);
	if (fd < 0 ||
	    pwrite(fd, header, sizeof(header), 1024) != sizeof(header) ||
	    pwrite(fd, "SWAPSPACE2", 10, page_size - 10) != 10)
		err = -EIO;
	close(fd);
	if (!err && swapon("/dev/zram0", 0))
		err = -errno;
	if (err)
		write_file(ZRAM "reset", "1");
	return err;
}

/* Base pages, not large folios: a file system chooses by the write's size. */
static int write_pages(int fd)
{
	static const char page[65536];

	for (int i = 0; i <= PAGES; i++)
		if (write(fd, page, page_size) != (ssize_t)page_size)
			return -EIO;
	return 0;
}

static int open_kind(enum kind kind)
{
	bool shmem = kind == SHMEM;
	int fd = shmem ? memfd_create("ferry_runs", 0) :
			 open(".", O_TMPFILE | O_RDWR, 0600);

	if (fd >= 0 && (shmem ? ftruncate(fd, (PAGES + 1) * page_size) :
				write_pages(fd))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static char *new_area(enum kind kind)
{
	bool file = kind == SHMEM || kind == DISK_FILE;
	int fd = file ? open_kind(kind) : -1;
	char *area;

	if (file && fd < 0)
		return NULL;
	area = mmap(NULL, (PAGES + 1) * page_size, PROT_READ | PROT_WRITE,
		    file ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, fd, 0);
	if (fd >= 0)
		close(fd);
	if (area == MAP_FAILED)
		return NULL;
	/* The last page keeps two areas from becoming one VMA. */
	mprotect(area + PAGES * page_size, page_size, PROT_NONE);
	madvise(area, PAGES * page_size, MADV_NOHUGEPAGE);
	return area;
}

/* A child that shares all private pages, until it is killed. */
static pid_t fork_sharer(void)
{
	pid_t child = fork();

	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return child;
}

/*
 * Swap an area out and in again. The child has the swap entries, so the pages
 * stay in the swap cache.
 */
static pid_t fill_swap_cache(char *area)
{
	pid_t child;

	madvise(area, PAGES * page_size, MADV_PAGEOUT);
	child = fork_sharer();
	for (int i = 0; i < PAGES; i++)
		load(area + i * page_size);
	return child;
}

/* Give the pages of an area different states; return the child, or 0. */
static pid_t prepare(char *area, enum kind kind)
{
	pid_t child = kind == SWAP_CACHE ? fill_swap_cache(area) : 0;

	/* Not young, not soft-dirty */
	write_file("/proc/self/clear_refs", "1");
	write_file("/proc/self/clear_refs", "4");
	for (int i = 0; i < PAGES; i++) {
		char *page = area + i * page_size;

		if (i % 4 == 1)
			load(page);
		if (i % 4 == 2 && kind != SWAP_CACHE)
			store(page, i + 1);
		if (i % 8 == 3 && kind == ANON)
			madvise(page, page_size, MADV_FREE);
	}
	return kind == FORKED ? fork_sharer() : child;
}

static long minor_faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt;
}

static void look(char *area, struct result *result)
{
	for (int i = 0; i < PAGES; i++)
		read_page(area + i * page_size, &result->pages[i]);
	result->referenced_kb = sum_smaps(area, "Referenced:");
	result->private_dirty_kb = sum_smaps(area, "Private_Dirty:");
	result->shared_dirty_kb = sum_smaps(area, "Shared_Dirty:");
	for (int i = 0; i < PAGES; i++)
		result->pages[i].content = load(area + i * page_size);
	result->write_faults = minor_faults();
	fill(area);
	result->write_faults = minor_faults() - result->write_faults;
}

FIXTURE(runs) {
	char *area[2];
	bool swapping;
	/* Settings before the test */
	struct saved balancing, lru_gen, enabled;
};

FIXTURE_VARIANT(runs) {
	enum kind kind;
	const char *lru_gen;
};

FIXTURE_VARIANT_ADD(runs, anon) {
	.kind = ANON,
	.lru_gen = "n",
};

FIXTURE_VARIANT_ADD(runs, anon_lru_gen) {
	.kind = ANON,
	.lru_gen = "y",
};

FIXTURE_VARIANT_ADD(runs, forked) {
	.kind = FORKED,
	.lru_gen = "n",
};

FIXTURE_VARIANT_ADD(runs, forked_lru_gen) {
	.kind = FORKED,
	.lru_gen = "y",
};

FIXTURE_VARIANT_ADD(runs, shmem) {
	.kind = SHMEM,
	.lru_gen = "n",
};

FIXTURE_VARIANT_ADD(runs, shmem_lru_gen) {
	.kind = SHMEM,
	.lru_gen = "y",
};

FIXTURE_VARIANT_ADD(runs, disk_file) {
	.kind = DISK_FILE,
	.lru_gen = "n",
};

FIXTURE_VARIANT_ADD(runs, disk_file_lru_gen) {
	.kind = DISK_FILE,
	.lru_gen = "y",
};

FIXTURE_VARIANT_ADD(runs, swap_cache) {
	.kind = SWAP_CACHE,
	.lru_gen = "n",
};

FIXTURE_VARIANT_ADD(runs, swap_cache_lru_gen) {
	.kind = SWAP_CACHE,
	.lru_gen = "y",
};

/* A page that is swapped in is on the node of the CPU. */
static int stay_on_node_0(void)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	return sched_setaffinity(0, sizeof(cpus), &cpus);
}

FIXTURE_SETUP(runs)
{
	int err;

	page_size = sysconf(_SC_PAGESIZE);
	/* Nothing is torn down after a skip, so it comes before all changes. */
	if (access(ROOT "runs", W_OK))
		SKIP(return, "no " ROOT "runs here, or no root");
	if (access(LRU_GEN, W_OK) && variant->lru_gen[0] == 'y')
		SKIP(return, "no multi-generational LRU");
	if (access("/sys/devices/system/node/node1/vmstat", R_OK))
		SKIP(return, "one memory node");
	if (variant->kind == SWAP_CACHE) {
		err = swap_on();
		if (err)
			SKIP(return, "no swap on zram: %s", strerror(-err));
		self->swapping = true;
	}
	ASSERT_EQ(0, stay_on_node_0());
	change_file(LRU_GEN, variant->lru_gen, &self->lru_gen);
	/* It makes pages fault at any time. */
	change_file(NUMA_BALANCING, "0", &self->balancing);
	ASSERT_EQ(0, change_file("runs", "0", &self->enabled));
	for (int i = 0; i < 2; i++) {
		self->area[i] = new_area(variant->kind);
		ASSERT_NE(NULL, self->area[i]);
		fill(self->area[i]);
	}
}

FIXTURE_TEARDOWN(runs)
{
	for (int i = 0; i < 2; i++)
		if (self->area[i])
			munmap(self->area[i], (PAGES + 1) * page_size);
	if (self->swapping) {
		swapoff("/dev/zram0");
		write_file(ZRAM "reset", "1");
	}
	restore_file("runs", &self->enabled);
	restore_file(LRU_GEN, &self->lru_gen);
	restore_file(NUMA_BALANCING, &self->balancing);
}

static void end_sharer(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

/* Move an area from node 0 to 1 in one of the ways. */
static void run_once(struct __test_metadata *_metadata, char *area,
		     enum kind kind, bool runs, struct result *result)
{
	const char *moved = ROOT "stats/runs/moved";
	long before[2][NODE_STATS];
	long in_runs;
	pid_t child;

	fill(area);
	/* Writeback would lock the buffers at any time. */
	if (kind == DISK_FILE)
		msync(area, PAGES * page_size, MS_SYNC);
	ASSERT_EQ(PAGES, move(area, 0));
	child = prepare(area, kind);
	ASSERT_EQ(0, write_file("runs", runs ? "1" : "0"));
	in_runs = read_number(moved, "");
	read_nodes(before);
	EXPECT_EQ(PAGES, move(area, 1));
	read_nodes(result->change);
	for (int node = 0; node < 2; node++)
		for (size_t i = 0; i < NODE_STATS; i++)
			result->change[node][i] -= before[node][i];
	in_runs = read_number(moved, "") - in_runs;
	/* Compaction may move others in runs at the same time. */
	EXPECT_LE(runs ? PAGES : 0, in_runs);
	if (!runs)
		EXPECT_EQ(0, in_runs);
	look(area, result);
	if (child > 0)
		end_sharer(child);
}

static void expect_same_pages(struct __test_metadata *_metadata,
			      const struct result *one,
			      const struct result *other)
{
	for (int i = 0; i < PAGES; i++) {
		const struct page *a = &one->pages[i], *b = &other->pages[i];

		EXPECT_EQ(i + 1, a->content);
		EXPECT_EQ(i + 1, b->content);
		EXPECT_EQ(a->pagemap, b->pagemap) {
			TH_LOG("page %d", i);
		}
		EXPECT_EQ(a->flags, b->flags) {
			TH_LOG("page %d", i);
		}
		EXPECT_EQ(a->mapcount, b->mapcount);
		EXPECT_EQ(a->memcg, b->memcg);
	}
	EXPECT_EQ(one->referenced_kb, other->referenced_kb);
	EXPECT_EQ(one->private_dirty_kb, other->private_dirty_kb);
	EXPECT_EQ(one->shared_dirty_kb, other->shared_dirty_kb);
	EXPECT_EQ(one->write_faults, other->write_faults);
}

static int count_swap_cache(const struct result *result)
{
	int count = 0;

	for (int i = 0; i < PAGES; i++)
		count += !!(result->pages[i].flags & KPF_SWAPCACHE);
	return count;
}

/* Other tasks change the statistics now and then: not every time. */
TEST_F_TIMEOUT(runs, leave_what_single_folios_leave, 600)
{
	struct result one = {}, other = {};

	for (int i = 0; i < ATTEMPTS; i++) {
		run_once(_metadata, self->area[0], variant->kind, false, &one);
		run_once(_metadata, self->area[1], variant->kind, true, &other);
		if (!memcmp(one.change, other.change, sizeof(one.change)))
			break;
	}
	expect_same_pages(_metadata, &one, &other);
	if (variant->kind == SWAP_CACHE)
		EXPECT_LE(PAGES / 2, count_swap_cache(&other));
	for (int node = 0; node < 2; node++) {
		for (size_t i = 0; i < NODE_STATS; i++) {
			EXPECT_EQ(one.change[node][i], other.change[node][i]) {
				TH_LOG("node %d: %s", node, node_stats[i]);
			}
		}
	}
}

/* Without a migrator, too, the kernel counts how long folios are locked. */
TEST_F(runs, locked_time_is_counted)
{
	const char *count = LOCKED "count";
	long batches;

	ASSERT_EQ(PAGES, move(self->area[0], 0));
	ASSERT_EQ(0, write_file("runs", "1"));
	batches = read_number(count, "");
	EXPECT_LE(0, batches);
	EXPECT_EQ(PAGES, move(self->area[0], 1));
	EXPECT_LT(batches, read_number(count, ""));
}

/* A page that a pipe holds fails once, as without runs. */
TEST_F(runs, held_page_fails_once)
{
	struct iovec held = { self->area[0], page_size };
	int node = 1, status, fds[2];
	void *page = self->area[0];
	long failed;

	ASSERT_EQ(PAGES, move(self->area[0], 0));
	ASSERT_EQ(0, write_file("runs", "1"));
	ASSERT_EQ(0, pipe(fds));
	ASSERT_EQ(page_size, vmsplice(fds[1], &held, 1, 0));
	failed = read_number(STATS "failed_pages", "");
	EXPECT_LE(0, failed);
	EXPECT_EQ(1, syscall(SYS_move_pages, 0, 1, &page, &node, &status,
			     MPOL_MF_MOVE_ALL));
	EXPECT_EQ(failed + 1, read_number(STATS "failed_pages", ""));
	close(fds[0]);
	close(fds[1]);
}

/* The knob is 0 or 1, and keeps its value when it rejects another. */
TEST(knob_rejects_other_values)
{
	static const char * const bad[] = { "2", "-1", "on" };
	struct saved before, after;

	if (geteuid())
		SKIP(return, "needs root");
	if (change_file("runs", "1", &before))
		SKIP(return, "kernel without CONFIG_FERRY_RUNS");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		EXPECT_EQ(write_file("runs", bad[i]), -EINVAL);
	EXPECT_EQ(change_file("runs", before.value, &after), 0);
	EXPECT_STREQ(after.value, "1\n");
	EXPECT_EQ(write_file("stats/runs/moved", "0"), -EACCES);
}

TEST_HARNESS_MAIN
