// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Selection of migrators
 *
 * Each reason of migration selects a migrator, or off, or inherits the choice
 * of the default. ferry_current has the result. Where no reason has a migrator,
 * the static keys that mm/migrate.c tests are off, and migration is as it is
 * without this code.
 *
 * A batch runs in an SRCU read section of ferry_srcu, from reading the
 * selection of its reason to its last counter. ferry_switch() waits for all
 * read sections before its caller may disable a migrator that is no longer
 * selected, or unpin its module.
 *
 * Locking: ferry_mutex protects the selections and the list of migrators.
 * ferry_srcu keeps a selected migrator in place while a batch uses it.
 * Writers of the knobs take ferry_srcu inside sysfs active references, never
 * ferry_mutex. The files migrator and runs do take it: they are never removed.
 */

#include <linux/cleanup.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/srcu.h>

#include "internal.h"

DEFINE_MUTEX(ferry_mutex);	/* the selections and the list of migrators */
DEFINE_SRCU(ferry_srcu);

/* Under ferry_mutex, like all writes below. */
struct ferry_choice ferry_choices[FERRY_NR_REASONS + 1] = {
	[0 ... FERRY_NR_REASONS - 1] = { .inherit = true },
};

/* NULL when off. */
static struct ferry_entry __rcu *ferry_current[FERRY_NR_REASONS];
/* Whether that is one that may gain from batches larger than without it. */
static bool ferry_offload[FERRY_NR_REASONS];

DEFINE_STATIC_KEY_FALSE(ferry_enabled);
DEFINE_STATIC_KEY_FALSE(ferry_large_batches);
/* Some reason has an offload migrator, or runs are on. */
DEFINE_STATIC_KEY_FALSE(ferry_long_lists);

/**
 * ferry_kernel_copy() - copy a batch folio by folio on the calling CPU
 * @batch: the batch
 *
 * Context: process context, all folios locked.
 * Return: 0.
 */
static int ferry_kernel_copy(struct ferry_batch *batch)
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

/**
 * ferry_selected() - the migrator of a reason
 * @reason: the reason
 *
 * Context: SRCU read section of ferry_srcu.
 * Return: its entry, valid until the section ends; NULL when off.
 */
struct ferry_entry *ferry_selected(enum migrate_reason reason)
{
	return srcu_dereference(ferry_current[reason], &ferry_srcu);
}

/**
 * ferry_selects_any() - check whether a reason has a migrator
 * @reason: the reason
 *
 * Context: any.
 * Return: false when off.
 */
bool ferry_selects_any(enum migrate_reason reason)
{
	return rcu_access_pointer(ferry_current[reason]);
}

/**
 * ferry_selects_offload() - check whether a reason has an offload migrator
 * @reason: the reason
 *
 * Context: any.
 * Return: false when off, or when the calling CPU copies.
 */
bool ferry_selects_offload(enum migrate_reason reason)
{
	return READ_ONCE(ferry_offload[reason]);
}

static void ferry_key_set(struct static_key_false *key, bool on)
{
	if (on)
		static_branch_enable(key);
	else
		static_branch_disable(key);
}

/* Direct the batches of a reason to an entry. */
static void ferry_direct(unsigned int reason, struct ferry_entry *entry)
{
	struct ferry_entry *old;

	old = rcu_replace_pointer(ferry_current[reason], entry,
				  lockdep_is_held(&ferry_mutex));
	WRITE_ONCE(ferry_offload[reason], entry && entry->ops != &ferry_kernel);
	/* A batch of the old migrator may still add a rate: it ages. */
	if (entry != old)
		ferry_rates_forget(reason);
}

/* Clients want the copy phase whatever is selected. */
static unsigned int ferry_nr_clients;

/* Runs are on: all reasons want long lists. */
static bool ferry_runs_want_lists;

static void ferry_keys_update(void)
{
	bool any = ferry_nr_clients, offload = false;
	unsigned int reason;

	for (reason = 0; reason < FERRY_NR_REASONS; reason++) {
		any |= ferry_selects_any(reason);
		offload |= ferry_selects_offload(reason);
	}
	ferry_key_set(&ferry_enabled, any);
	ferry_key_set(&ferry_large_batches, offload);
	ferry_key_set(&ferry_long_lists, offload || ferry_runs_want_lists);
}

/**
 * ferry_want_long_lists() - let all reasons collect long lists, or not
 * @want: else only those that have an offload migrator do
 *
 * Context: process context.
 */
void ferry_want_long_lists(bool want)
{
	guard(mutex)(&ferry_mutex);
	WRITE_ONCE(ferry_runs_want_lists, want);
	ferry_keys_update();
}

/**
 * __ferry_wants_long_lists() - check whether a long list gains anything
 * @reason: the reason of the migration
 *
 * Context: any.
 * Return: true if it has an offload migrator, or if runs are on.
 */
bool __ferry_wants_long_lists(enum migrate_reason reason)
{
	return ferry_selects_offload(reason) ||
	       READ_ONCE(ferry_runs_want_lists);
}

/**
 * ferry_clients_add() - add clients, or remove them
 * @nr: their number, negative to remove
 *
 * Context: process context, under ferry_mutex.
 */
void ferry_clients_add(int nr)
{
	ferry_nr_clients += nr;
	ferry_keys_update();
}

/**
 * ferry_switch() - change a selection, and wait for the batches before it
 * @index:	the reason, or FERRY_DEFAULT
 * @choice:	the new choice, its migrator enabled and pinned
 *
 * When this returns, no batch of the copy phase is inside the copy() of a
 * migrator because of a selection that has ended.
 *
 * Context: process context, under ferry_mutex.
 */
void ferry_switch(unsigned int index, struct ferry_choice choice)
{
	unsigned int reason;

	ferry_choices[index] = choice;
	for (reason = 0; reason < FERRY_NR_REASONS; reason++) {
		choice = ferry_choices[reason];
		if (choice.inherit)
			choice = ferry_choices[FERRY_DEFAULT];
		ferry_direct(reason, choice.entry);
	}
	ferry_keys_update();
	synchronize_srcu(&ferry_srcu);
}
