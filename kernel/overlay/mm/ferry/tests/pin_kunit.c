// SPDX-License-Identifier: GPL-2.0
/*
 * memfd_pin_folios() waits for a migration that began before the pin: the copy
 * phase relies on that.
 */

#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/err.h>
#include <linux/file.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/shmem_fs.h>

/* Far longer than a pin of one folio takes. */
#define PIN_WAIT_MS	200

struct pinner {
	struct file *file;
	struct folio *folio;
	struct completion done;
	long pinned;
};

static int pin_one(void *data)
{
	struct pinner *pinner = data;
	pgoff_t offset;

	pinner->pinned = memfd_pin_folios(pinner->file, 0, PAGE_SIZE - 1,
					  &pinner->folio, 1, &offset);
	complete_all(&pinner->done);
	return 0;
}

/* Migration has the folio lock from before the copy until after the move. */
static void pin_waits_for_migration(struct kunit *test)
{
	unsigned long wait = msecs_to_jiffies(PIN_WAIT_MS);
	struct pinner pinner = {};
	struct task_struct *task;
	struct folio *folio;

	if (!IS_ENABLED(CONFIG_SHMEM))
		kunit_skip(test, "no shmem");
	init_completion(&pinner.done);
	pinner.file = shmem_file_setup("ferry_pin", PAGE_SIZE, EMPTY_VMA_FLAGS);
	KUNIT_ASSERT_FALSE(test, IS_ERR(pinner.file));
	folio = shmem_read_folio(pinner.file->f_mapping, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(folio));
	folio_lock(folio);
	task = kthread_run(pin_one, &pinner, "ferry_pin");
	if (!IS_ERR(task))
		KUNIT_EXPECT_EQ(test, wait_for_completion_timeout(&pinner.done,
								  wait), 0);
	folio_unlock(folio);
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	wait_for_completion(&pinner.done);
	KUNIT_EXPECT_EQ(test, pinner.pinned, 1);
	if (pinner.pinned == 1)
		unpin_folio(pinner.folio);
	folio_put(folio);
	fput(pinner.file);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(pin_waits_for_migration),
	{}
};

static struct kunit_suite suite = {
	.name = "ferry_pin",
	.test_cases = cases,
};

kunit_test_suite(suite);
