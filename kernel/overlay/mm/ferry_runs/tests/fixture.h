/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MM_FERRY_RUNS_TESTS_FIXTURE_H
#define _MM_FERRY_RUNS_TESTS_FIXTURE_H

/* Pages of the tests of runs, and what a test sees and changes of them. */

#include <kunit/test.h>
#include <linux/fs.h>

#include "../internal.h"

/* More than two runs, and all combinations of the bits below. */
#define PAGES	160
#define BYTES	(PAGES * PAGE_SIZE)

/* The bits of a PTE, and of the page that it maps. */
enum {
	HAS_YOUNG = BIT(0),
	HAS_DIRTY = BIT(1),
	HAS_WRITE = BIT(2),
	HAS_SOFT_DIRTY = BIT(3),
	HAS_UFFD = BIT(4),
	HAS_PROTNONE = BIT(5),
	HAS_EXCLUSIVE = BIT(6),
};

/* The state of a page, which migration must not change. */
struct page_state {
	unsigned int bits;
	unsigned long pfn;
	unsigned long flags;
	struct mem_cgroup *memcg;
	struct address_space *mapping;
	pgoff_t index;
	int mapcount;
	int refs;
};

/* fixture.c */
int ferry_test_init(struct kunit *test);
void ferry_test_exit(struct kunit *test);
unsigned long ferry_test_map(struct kunit *test, struct file *file);
void ferry_test_fill(struct kunit *test, unsigned long start);
void ferry_test_read(struct kunit *test, unsigned long address,
		     struct page_state *state);
void ferry_test_set_bits(struct kunit *test, unsigned long address,
			 unsigned int bits);
void ferry_test_isolate(struct kunit *test, unsigned long address,
			struct list_head *folios);
void ferry_test_isolate_all(struct kunit *test, unsigned long start,
			    struct list_head *folios);
u64 ferry_test_stat(enum ferry_run_stat stat);

/* page_cache.c */
enum file_kind { PLAIN, PRIVATE, BUFFERS, BUFFERS_NOREFS };
struct file *ferry_test_file(struct kunit *test, enum file_kind kind);
int ferry_test_mount(struct kunit_suite *suite);
void ferry_test_unmount(struct kunit_suite *suite);

#endif /* _MM_FERRY_RUNS_TESTS_FIXTURE_H */
