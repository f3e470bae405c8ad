/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MM_MIGRC_TESTS_FIXTURE_H
#define _MM_MIGRC_TESTS_FIXTURE_H

/* Fixtures of the tests of migrc, each with an action that undoes it. */

#include <kunit/test.h>
#include <linux/mm.h>
#include <linux/migrc.h>
#include <linux/sched/mm.h>

#include "../internal.h"

static inline void free_mm(void *mm)
{
	__migrc_mm_exit(mm);
	mmput(mm);
}

static inline struct mm_struct *new_mm(struct kunit *test)
{
	struct mm_struct *mm = mm_alloc();

	KUNIT_ASSERT_NOT_NULL(test, mm);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, free_mm, mm),
			0);
	return mm;
}

static inline void empty_quarantine(void *unused)
{
	__migrc_drain(MIGRC_FAILURE);
}

static inline void restore_age(void *ms)
{
	WRITE_ONCE(migrc_max_age_ms, (unsigned long)ms);
	migrc_apply_max_age();
}

static inline void free_table(void *table)
{
	pagetable_free(table);
}

/* A page table without PTEs: migrc only uses its struct ptdesc. */
static inline pte_t *new_table(struct kunit *test)
{
	struct ptdesc *table = pagetable_alloc(GFP_KERNEL, 0);

	KUNIT_ASSERT_NOT_NULL(test, table);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, free_table,
							table), 0);
	migrc_table_init(table);
	return ptdesc_address(table);
}

/* As a batch does at its end; the folios stay for longer than a test takes. */
static inline void end_batch(struct kunit *test, struct migrc_batch *batch)
{
	void *age = (void *)migrc_max_age_ms;

	KUNIT_ASSERT_EQ(test,
			kunit_add_action_or_reset(test, restore_age, age), 0);
	WRITE_ONCE(migrc_max_age_ms, MSEC_PER_SEC * 60);
	migrc_apply_max_age();
	migrc_quarantine(batch);
	KUNIT_ASSERT_EQ(test,
			kunit_add_action_or_reset(test, empty_quarantine, NULL),
			0);
}

static inline void new_sources(struct kunit *test, unsigned int nr, int nid,
			       struct migrc_batch *batch)
{
	INIT_LIST_HEAD(&batch->sources);
	while (nr--) {
		struct folio *folio = __folio_alloc(GFP_KERNEL | __GFP_THISNODE,
						    0, nid, NULL);

		KUNIT_ASSERT_NOT_NULL(test, folio);
		list_add(&folio->lru, &batch->sources);
	}
}

static inline void put_into_quarantine(struct kunit *test, unsigned int nr,
				       struct migrc_batch *outer, int nid)
{
	struct migrc_batch batch = { .outer = outer };

	new_sources(test, nr, nid, &batch);
	end_batch(test, &batch);
}

#endif /* _MM_MIGRC_TESTS_FIXTURE_H */
