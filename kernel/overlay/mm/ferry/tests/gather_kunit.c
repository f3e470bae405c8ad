// SPDX-License-Identifier: GPL-2.0
/*
 * The gathering of a batch, through migrate_pages(): folios of a file move
 * within their node, while callbacks of the test look at them. Each case tests
 * one step of the DOC block of mm/ferry/gather.c.
 */

#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/file.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/migrate.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/shmem_fs.h>
#include <linux/sizes.h>
#include <linux/swap.h>

#include "../../internal.h"
#include "../internal.h"

#define FOLIOS		128

/* For the callbacks of a migration, and of them. One test runs at a time. */
static struct {
	struct folio *src[FOLIOS];
	struct folio *waits_for;	/* a reader waits for its lock */
	struct task_struct *reader;
	unsigned int sleep_us;		/* of an allocation */
	unsigned int may_alloc;		/* allocations before one fails */
	const char *select;		/* selected by an allocation */
	unsigned int tries;
	unsigned int allocated;
	unsigned int put;
	unsigned int locked;		/* allocations with a folio locked */
	unsigned int batches;
	unsigned int largest;		/* folios of the largest batch */
	bool waited;
	struct folio *bad;		/* that the migrator does not copy */
	struct ferry_client *client;	/* that migrates, or NULL */
} seen;

struct gather_ctx {
	struct file *file;
	struct list_head folios;
	unsigned long min_bytes;
	unsigned long max_us;
};

static bool any_locked(void)
{
	unsigned int i;

	for (i = 0; i < FOLIOS; i++)
		if (seen.src[i] && folio_test_locked(seen.src[i]))
			return true;
	return false;
}

static struct folio *test_alloc(struct folio *src, unsigned long private)
{
	struct folio *folio;

	seen.locked += any_locked();
	if (seen.sleep_us)
		fsleep(seen.sleep_us);
	if (seen.select && seen.tries == FOLIOS / 2)
		ferry_select(FERRY_DEFAULT, seen.select);
	if (seen.tries++ >= seen.may_alloc)
		return NULL;
	folio = folio_alloc(GFP_HIGHUSER_MOVABLE, 0);
	seen.allocated += !!folio;
	return folio;
}

static void test_put(struct folio *dst, unsigned long private)
{
	seen.put++;
	folio_put(dst);
}

/* As a read of shmem or a buffered write: a reference, then the lock. */
static int read_folio_slowly(void *data)
{
	struct folio *folio = data;

	folio_get(folio);
	folio_lock(folio);
	folio_unlock(folio);
	/* Copy to the user. */
	fsleep(100);
	folio_put(folio);
	return 0;
}

/* Start a reader of a folio that is being migrated; return when it waits. */
static void start_reader(struct folio *folio)
{
	unsigned int i;

	seen.reader = kthread_run(read_folio_slowly, folio, "ferry_reader");
	if (IS_ERR(seen.reader))
		return;
	for (i = 0; i < 1000 && !folio_test_waiters(folio); i++)
		fsleep(1000);
	seen.waited = folio_test_waiters(folio);
}

static int test_copy(struct ferry_batch *batch)
{
	unsigned int i;

	seen.batches++;
	seen.largest = max(seen.largest, batch->nr);
	for (i = 0; i < batch->nr; i++) {
		struct ferry_pair *pair = &batch->pairs[i];

		if (pair->src == seen.waits_for && !seen.reader)
			start_reader(pair->src);
		if (pair->src == seen.bad)
			pair->status = -EIO;
		else
			pair->status = folio_mc_copy(pair->dst, pair->src);
	}
	return 0;
}

static const struct ferry_migrator test_migrator = {
	.name = "kunit",
	.copy = test_copy,
};

static int gather_init(struct kunit *test)
{
	struct gather_ctx *ctx;

	if (!IS_ENABLED(CONFIG_SHMEM))
		kunit_skip(test, "no shmem");
	ctx = kunit_kzalloc(test, sizeof(*ctx), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ctx);
	INIT_LIST_HEAD(&ctx->folios);
	memset(&seen, 0, sizeof(seen));
	seen.may_alloc = UINT_MAX;
	ctx->min_bytes = ferry_batch_min_bytes;
	ctx->max_us = ferry_batch_max_us;
	WRITE_ONCE(ferry_batch_min_bytes, 0);
	/* No batch ends by its time unless the case says so. */
	WRITE_ONCE(ferry_batch_max_us, USEC_PER_SEC);
	test->priv = ctx;
	KUNIT_ASSERT_EQ(test, ferry_register(&test_migrator), 0);
	KUNIT_ASSERT_EQ(test, ferry_select(FERRY_DEFAULT, "kunit"), 0);
	ctx->file = shmem_file_setup("ferry_gather", FOLIOS * PAGE_SIZE,
				     EMPTY_VMA_FLAGS);
	KUNIT_ASSERT_FALSE(test, IS_ERR(ctx->file));
	return 0;
}

static void gather_exit(struct kunit *test)
{
	struct gather_ctx *ctx = test->priv;

	if (!ctx)
		return;
	KUNIT_EXPECT_EQ(test, ferry_select(FERRY_DEFAULT, "off"), 0);
	ferry_unregister(&test_migrator);
	WRITE_ONCE(ferry_batch_min_bytes, ctx->min_bytes);
	WRITE_ONCE(ferry_batch_max_us, ctx->max_us);
	if (!IS_ERR_OR_NULL(ctx->file))
		fput(ctx->file);
}

/* Write each folio of the file with its number, and isolate all. */
static void gather_fill(struct kunit *test)
{
	struct gather_ctx *ctx = test->priv;
	unsigned int i;

	for (i = 0; i < FOLIOS; i++) {
		struct folio *folio;

		folio = shmem_read_folio(ctx->file->f_mapping, i);
		KUNIT_ASSERT_FALSE(test, IS_ERR(folio));
		memset(folio_address(folio), i + 1, PAGE_SIZE);
		folio_mark_dirty(folio);
		seen.src[i] = folio;
		folio_put(folio);
	}
	lru_add_drain_all();
	for (i = 0; i < FOLIOS; i++)
		KUNIT_ASSERT_TRUE(test, isolate_folio_to_list(seen.src[i],
							      &ctx->folios));
}

/* Migrate what gather_fill() isolated, first to last, and put the rest back. */
static int gather_migrate(struct kunit *test, enum migrate_mode mode,
			  unsigned int *moved)
{
	struct gather_ctx *ctx = test->priv;
	int left;

	if (seen.client)
		left = ferry_client_migrate(seen.client, &ctx->folios,
					    test_alloc, test_put, 0, mode,
					    MR_SYSCALL, moved);
	else
		left = migrate_pages(&ctx->folios, test_alloc, test_put, 0,
				     mode, MR_SYSCALL, moved);
	putback_movable_pages(&ctx->folios);
	return left;
}

/* Expect the content where it was, and no destination lost. */
static void gather_check(struct kunit *test, unsigned int moved)
{
	struct gather_ctx *ctx = test->priv;
	unsigned int i;

	KUNIT_EXPECT_EQ(test, seen.allocated, moved + seen.put);
	for (i = 0; i < FOLIOS; i++) {
		struct folio *folio;
		u8 *content;

		folio = shmem_read_folio(ctx->file->f_mapping, i);
		KUNIT_ASSERT_FALSE(test, IS_ERR(folio));
		content = folio_address(folio);
		KUNIT_EXPECT_EQ(test, content[0], i + 1);
		KUNIT_EXPECT_EQ(test, content[PAGE_SIZE - 1], i + 1);
		folio_put(folio);
	}
}

/* A slow allocation makes no folio wait, and does not divide the batch. */
static void gather_allocates_before_it_locks(struct kunit *test)
{
	unsigned int moved;

	gather_fill(test);
	/* All together longer than a batch may take to gather, 500 ms. */
	seen.sleep_us = 10 * USEC_PER_MSEC;
	KUNIT_EXPECT_EQ(test, gather_migrate(test, MIGRATE_ASYNC, &moved), 0);
	KUNIT_EXPECT_EQ(test, moved, FOLIOS);
	KUNIT_EXPECT_EQ(test, seen.locked, 0);
	KUNIT_EXPECT_EQ(test, seen.batches, 1);
	KUNIT_EXPECT_EQ(test, seen.tries, FOLIOS);
	gather_check(test, moved);
}

/* Time counts from the first call, which is after the first unmapping. */
static void gather_expires(struct kunit *test)
{
	struct ferry_gather gather;
	LIST_HEAD(folios);

	WRITE_ONCE(ferry_batch_max_us, 20 * USEC_PER_MSEC);
	ferry_gather_init(&gather, &folios, test_alloc, test_put, 0,
			  MR_SYSCALL);
	KUNIT_EXPECT_FALSE(test, ferry_gather_expired(&gather));
	/* Where the TSC is unstable, local_clock() may be late by a tick. */
	fsleep(20 * USEC_PER_MSEC + 2 * TICK_USEC);
	KUNIT_EXPECT_TRUE(test, ferry_gather_expired(&gather));
}

/* The batch ends by its time; the rest fails in no mode. */
static void check_time(struct kunit *test, enum migrate_mode mode)
{
	unsigned int fits = FERRY_WALKS + FERRY_WALKS / 8 + 1;
	unsigned int moved, left, tries = FOLIOS;

	gather_fill(test);
	/* It is negative in ns: each batch ends when the clock is read. */
	WRITE_ONCE(ferry_batch_max_us, ULONG_MAX);
	KUNIT_EXPECT_EQ(test, gather_migrate(test, mode, &moved), 0);
	KUNIT_EXPECT_EQ(test, moved, FOLIOS);
	/* Not mapped, so one walk each */
	KUNIT_EXPECT_EQ(test, seen.batches, FOLIOS / FERRY_WALKS);
	/* The first one has destinations for all, the others for fewer. */
	fits = max(fits, FERRY_SHARED_BYTES / PAGE_SIZE);
	for (left = FOLIOS - FERRY_WALKS; left; left -= FERRY_WALKS)
		tries += min(left, fits);
	KUNIT_EXPECT_EQ(test, seen.tries, tries);
	KUNIT_EXPECT_EQ(test, seen.locked, 0);
	gather_check(test, moved);
}

static void gather_ends_in_time(struct kunit *test)
{
	check_time(test, MIGRATE_ASYNC);
}

static void gather_ends_in_time_sync(struct kunit *test)
{
	check_time(test, MIGRATE_SYNC);
}

/* Of all tries one fails, as without a migrator; the others are used. */
static void gather_uses_what_it_got(struct kunit *test)
{
	unsigned int moved;

	gather_fill(test);
	seen.may_alloc = FOLIOS / 2;
	KUNIT_EXPECT_EQ(test, gather_migrate(test, MIGRATE_ASYNC, &moved),
			-ENOMEM);
	KUNIT_EXPECT_EQ(test, moved, FOLIOS / 2);
	KUNIT_EXPECT_EQ(test, seen.tries, FOLIOS / 2 + 1);
	KUNIT_EXPECT_EQ(test, seen.batches, 1);
	gather_check(test, moved);
}

/* A folio that others have locked fails alone, after all passes. */
static void gather_leaves_locked(struct kunit *test)
{
	struct folio *locked;
	unsigned int moved;

	gather_fill(test);
	locked = seen.src[FOLIOS / 2];
	folio_lock(locked);
	/* Not the lock of a folio of the batch. */
	seen.src[FOLIOS / 2] = NULL;
	KUNIT_EXPECT_EQ(test, gather_migrate(test, MIGRATE_ASYNC, &moved), 1);
	folio_unlock(locked);
	KUNIT_EXPECT_EQ(test, moved, FOLIOS - 1);
	KUNIT_EXPECT_EQ(test, seen.locked, 0);
	KUNIT_EXPECT_EQ(test, seen.batches, 1);
	gather_check(test, moved);
}

/* A task that waits for the lock gets it, and its folio moves after that. */
static void gather_lets_waiters_go(struct kunit *test)
{
	unsigned int moved;

	gather_fill(test);
	seen.waits_for = seen.src[FOLIOS / 2];
	KUNIT_EXPECT_EQ(test, gather_migrate(test, MIGRATE_ASYNC, &moved), 0);
	KUNIT_EXPECT_TRUE(test, seen.waited);
	KUNIT_EXPECT_EQ(test, moved, FOLIOS);
	KUNIT_EXPECT_EQ(test, seen.batches, 2);
	KUNIT_EXPECT_EQ(test, seen.locked, 0);
	gather_check(test, moved);
}

/* Deselected or selected in the middle, no destination is lost. */
static void check_switch(struct kunit *test, const char *before,
			 const char *after)
{
	unsigned int moved;

	KUNIT_ASSERT_EQ(test, ferry_select(FERRY_DEFAULT, before), 0);
	gather_fill(test);
	seen.select = after;
	KUNIT_EXPECT_EQ(test, gather_migrate(test, MIGRATE_ASYNC, &moved), 0);
	KUNIT_EXPECT_EQ(test, moved, FOLIOS);
	gather_check(test, moved);
}

static void gather_deselected(struct kunit *test)
{
	check_switch(test, "kunit", "off");
}

static void gather_selected(struct kunit *test)
{
	check_switch(test, "off", "kunit");
}

/* Migrate for a client while off is selected. Return how many have moved. */
static unsigned int client_moves(struct kunit *test, bool required,
				 enum migrate_mode mode)
{
	unsigned int moved;
	int left;

	KUNIT_ASSERT_EQ(test, ferry_select(FERRY_DEFAULT, "off"), 0);
	seen.client = ferry_client_open("kunit", required);
	KUNIT_ASSERT_FALSE(test, IS_ERR(seen.client));
	/* A switch does not turn the copy phase off. */
	KUNIT_ASSERT_EQ(test, ferry_select(FERRY_DEFAULT, "off"), 0);
	gather_fill(test);
	seen.bad = seen.src[FOLIOS / 2];
	left = gather_migrate(test, mode, &moved);
	KUNIT_EXPECT_EQ(test, left, FOLIOS - moved);
	KUNIT_EXPECT_GT(test, seen.batches, 0);
	gather_check(test, moved);
	ferry_client_close(seen.client);
	seen.client = NULL;
	return moved;
}

/* A client that only prefers the migrator has the CPU copy the rest. */
static void client_prefers(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, client_moves(test, false, MIGRATE_ASYNC),
			FOLIOS);
}

/* With a migrator that is required, a folio it did not copy stays. */
static void client_requires(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, client_moves(test, true, MIGRATE_ASYNC),
			FOLIOS - 1);
}

static void client_requires_sync(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, client_moves(test, true, MIGRATE_SYNC),
			FOLIOS - 1);
}

/* A folio whose reference count is wrong is not copied by the CPU either. */
static void client_requires_again(struct kunit *test)
{
	unsigned int moved;

	KUNIT_ASSERT_EQ(test, ferry_select(FERRY_DEFAULT, "off"), 0);
	seen.client = ferry_client_open("kunit", true);
	KUNIT_ASSERT_FALSE(test, IS_ERR(seen.client));
	gather_fill(test);
	folio_get(seen.src[0]);
	KUNIT_EXPECT_EQ(test, gather_migrate(test, MIGRATE_SYNC, &moved), 1);
	KUNIT_EXPECT_EQ(test, moved, FOLIOS - 1);
	folio_put(seen.src[0]);
	gather_check(test, moved);
	ferry_client_close(seen.client);
}

static void client_unknown(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, PTR_ERR(ferry_client_open("none", true)),
			-ENOENT);
}

/* However long the list is, a batch has no more folios than without. */
static void gather_bounds_folios(struct kunit *test)
{
	unsigned int i, nr = FERRY_LOCKED_FOLIOS + 10;
	struct ferry_gather gather;
	struct folio *folio, *next;
	LIST_HEAD(folios);
	int from, to;

	/* So fast that the bytes of single pages are no limit. */
	for_each_online_node(from)
		for_each_online_node(to)
			ferry_rate_update(MR_SYSCALL, from, to, SZ_1G,
					  NSEC_PER_USEC);
	for (i = 0; i < nr; i++) {
		folio = folio_alloc(GFP_KERNEL, 0);
		KUNIT_ASSERT_NOT_NULL(test, folio);
		/* With a second reference it is not about to be freed. */
		folio_get(folio);
		list_add_tail(&folio->lru, &folios);
	}
	ferry_gather_init(&gather, &folios, test_alloc, test_put, 0,
			  MR_SYSCALL);
	ferry_gather_begin(&gather, &folios);
	KUNIT_EXPECT_EQ(test, gather.nr, FERRY_LOCKED_FOLIOS);
	KUNIT_EXPECT_FALSE(test, ferry_gather_next(&gather, &folios, &folios));
	KUNIT_EXPECT_EQ(test, seen.put, FERRY_LOCKED_FOLIOS);
	list_for_each_entry_safe(folio, next, &folios, lru) {
		folio_put(folio);
		folio_put(folio);
	}
}

static struct kunit_case gather_cases[] = {
	KUNIT_CASE(gather_allocates_before_it_locks),
	KUNIT_CASE(gather_expires),
	KUNIT_CASE(gather_ends_in_time),
	KUNIT_CASE(gather_ends_in_time_sync),
	KUNIT_CASE(gather_uses_what_it_got),
	KUNIT_CASE(gather_leaves_locked),
	KUNIT_CASE(gather_lets_waiters_go),
	KUNIT_CASE(gather_deselected),
	KUNIT_CASE(gather_selected),
	KUNIT_CASE(client_prefers),
	KUNIT_CASE(client_requires),
	KUNIT_CASE(client_requires_sync),
	KUNIT_CASE(client_requires_again),
	KUNIT_CASE(client_unknown),
	KUNIT_CASE(gather_bounds_folios),
	{}
};

static struct kunit_suite gather_suite = {
	.name = "ferry_gather",
	.init = gather_init,
	.exit = gather_exit,
	.test_cases = gather_cases,
};

kunit_test_suite(gather_suite);
