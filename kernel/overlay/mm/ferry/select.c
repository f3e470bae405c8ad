// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Selection of a migrator
 *
 * At most one migrator is selected. When none is, the static keys that
 * mm/migrate.c tests are off, and migration is as it is without this code.
 *
 * A batch runs in an SRCU read section of ferry_srcu, from reading the
 * selection to its last counter. ferry_switch() changes the selected entry and
 * the static call one after the other, so one migrator may copy a batch that is
 * counted for the other. Both stay in place until the read section ends,
 * because ferry_switch() waits for all read sections before its caller may
 * disable the old migrator or unpin its module.
 *
 * Locking: ferry_mutex protects the selection and the list of migrators.
 * ferry_srcu keeps the selected migrator in place while a batch uses it.
 * Writers of the knobs take ferry_srcu inside sysfs active references, never
 * ferry_mutex.
 */

#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/srcu.h>
#include <linux/static_call.h>

#include "internal.h"

DEFINE_MUTEX(ferry_mutex);	/* the selection and the list of migrators */
DEFINE_SRCU(ferry_srcu);
struct ferry_entry __rcu *ferry_current;	/* NULL when off */

DEFINE_STATIC_KEY_FALSE(ferry_enabled);
DEFINE_STATIC_KEY_FALSE(ferry_large_batches);

/**
 * ferry_kernel_copy() - copy a batch folio by folio on the calling CPU
 * @batch: the batch
 *
 * Context: process context, all folios locked.
 * Return: 0.
 */
int ferry_kernel_copy(struct ferry_batch *batch)
{
	unsigned int i;

	for (i = 0; i < batch->nr; i++) {
		struct ferry_pair *pair = &batch->pairs[i];

		pair->status = folio_mc_copy(pair->dst, pair->src);
		cond_resched();
	}
	return 0;
}

/* The built-in migrator: the measure for all others. */
const struct ferry_migrator ferry_kernel = {
	.name = "kernel",
	.copy = ferry_kernel_copy,
};

DEFINE_STATIC_CALL(ferry_copy, ferry_kernel_copy);

/**
 * ferry_selected() - the selected migrator
 *
 * Context: SRCU read section of ferry_srcu.
 * Return: its entry, valid until the section ends; NULL when off.
 */
struct ferry_entry *ferry_selected(void)
{
	return srcu_dereference(ferry_current, &ferry_srcu);
}

static void ferry_key_set(struct static_key_false *key, bool on)
{
	if (on)
		static_branch_enable(key);
	else
		static_branch_disable(key);
}

/**
 * ferry_switch() - select an entry, and wait for the batches of the old one
 * @entry: the entry, its migrator enabled and pinned; NULL for off
 *
 * No batch is inside the old migrator's copy() when this returns.
 *
 * Context: process context, under ferry_mutex.
 * Return: the entry that was selected before, NULL if none was.
 */
struct ferry_entry *ferry_switch(struct ferry_entry *entry)
{
	struct ferry_entry *old;

	old = rcu_replace_pointer(ferry_current, entry,
				  lockdep_is_held(&ferry_mutex));
	static_call_update(ferry_copy,
			   entry ? entry->ops->copy : ferry_kernel_copy);
	ferry_key_set(&ferry_enabled, entry);
	ferry_key_set(&ferry_large_batches,
		      entry && entry->ops != &ferry_kernel);
	synchronize_srcu(&ferry_srcu);
	return old;
}
