// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Migrators
 *
 * A migrator is a way to copy a batch of folios: the calling CPU (`kernel`, built in),
 * many CPUs, a DMA engine. Any number are registered; at most one is selected, and
 * `off` selects none, which leaves migration as it is without this code.
 *
 * Life cycle:
 *
 *   - ferry_register() lists the migrator, with its counters and knobs in sysfs.
 *   - Selecting it pins its module, points the static call at its copy() and opens
 *     the static key. Batches that began before finish with the one they began with.
 *   - Selecting another reverses that, waits until no batch can be inside the old
 *     copy(), and only then unpins the module.
 *   - ferry_unregister() selects `kernel` if the migrator was still selected (only a
 *     built-in one can be: a selected module is pinned), waits as above, and takes
 *     the migrator out of sysfs.
 *
 * A batch runs in an SRCU read section from reading the selection to its last counter.
 * The static call and the selected entry change one after the other, so a batch may
 * be copied by one migrator and counted for the other, but both are in place until the
 * read section ends: neither changes without the synchronize_srcu() that follows.
 *
 * Lock order: ferry_mutex -> sysfs active references -> knob locks of a migrator.
 * Nothing is taken inside the SRCU read section but what a migrator's copy() takes.
 */

#include <linux/cleanup.h>
#include <linux/init.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/static_call.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "internal.h"

static DEFINE_MUTEX(ferry_mutex);	/* ferry_migrators and the selection */
static LIST_HEAD(ferry_migrators);
static struct ferry_entry __rcu *ferry_current;	/* NULL is off */
static bool ferry_ready;		/* set once, at boot */

DEFINE_SRCU(ferry_srcu);
DEFINE_STATIC_KEY_FALSE(ferry_enabled);
DEFINE_STATIC_KEY_FALSE(ferry_large_batches);

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

/* The caller's CPU, one folio after the other: what every other migrator must beat. */
const struct ferry_migrator ferry_kernel = {
	.name = "kernel",
	.copy = ferry_kernel_copy,
};

DEFINE_STATIC_CALL(ferry_copy_call, ferry_kernel_copy);

/**
 * ferry_selected() - the migrator in use
 *
 * Context: SRCU read section of ferry_srcu.
 * Return: its entry, valid until the section ends; NULL when off.
 */
struct ferry_entry *ferry_selected(void)
{
	return srcu_dereference(ferry_current, &ferry_srcu);
}

/** ferry_limit_refresh() - let a new value of a limit's knob take effect now */
void ferry_limit_refresh(void)
{
	int idx = srcu_read_lock(&ferry_srcu);

	ferry_limit_update(ferry_selected());
	srcu_read_unlock(&ferry_srcu, idx);
}

/**
 * ferry_copy() - copy a batch by the selected migrator
 * @batch: folios to copy
 *
 * Context: SRCU read section of ferry_srcu, process context, folios locked.
 * Return: 0, or a negative errno if the migrator refused the batch.
 */
int ferry_copy(struct ferry_batch *batch)
{
	return static_call(ferry_copy_call)(batch);
}

static struct ferry_entry *ferry_find(const char *name)
{
	struct ferry_entry *entry;

	lockdep_assert_held(&ferry_mutex);
	list_for_each_entry(entry, &ferry_migrators, list)
		if (sysfs_streq(name, entry->ops->name))
			return entry;
	return NULL;
}

static void ferry_key_set(struct static_key_false *key, bool on)
{
	if (on)
		static_branch_enable(key);
	else
		static_branch_disable(key);
}

/* Make a migrator ready to be selected. */
static int ferry_take(struct ferry_entry *entry)
{
	int err;

	if (!try_module_get(entry->ops->owner))
		return -ENODEV;
	err = entry->ops->enable ? entry->ops->enable() : 0;
	if (err)
		module_put(entry->ops->owner);
	return err;
}

static void ferry_drop(struct ferry_entry *entry)
{
	if (entry->ops->disable)
		entry->ops->disable();
	module_put(entry->ops->owner);
}

/* Make @entry, which ferry_take() made ready, the selected one; NULL is off. */
static void ferry_switch(struct ferry_entry *entry)
{
	struct ferry_entry *old;

	lockdep_assert_held(&ferry_mutex);
	old = rcu_replace_pointer(ferry_current, entry,
				  lockdep_is_held(&ferry_mutex));
	if (entry)
		static_call_update(ferry_copy_call, entry->ops->copy);
	else
		static_call_update(ferry_copy_call, ferry_kernel_copy);
	ferry_key_set(&ferry_enabled, entry);
	ferry_key_set(&ferry_large_batches, entry && entry->ops != &ferry_kernel);
	/* No batch is inside the old copy() once this returns. */
	synchronize_srcu(&ferry_srcu);
	/* The last of the old one's batches may have set the limit after us. */
	ferry_limit_update(entry);
	if (old)
		ferry_drop(old);
}

/**
 * ferry_select() - select a migrator by name
 * @name: a registered migrator's name or "off"; a trailing newline is ignored
 *
 * Context: process context. Takes ferry_mutex, waits for batches in flight.
 * Return: 0, -EINVAL for an unknown name, -ENODEV if its module is going away, -ENOMEM, what
 * the migrator's enable() returns; on error the selection stays.
 */
int ferry_select(const char *name)
{
	struct ferry_entry *entry = NULL;
	int err;

	guard(mutex)(&ferry_mutex);
	if (!sysfs_streq(name, "off")) {
		entry = ferry_find(name);
		if (!entry)
			return -EINVAL;
		err = ferry_batches_alloc();
		if (err)
			return err;
	}
	if (entry == rcu_access_pointer(ferry_current))
		return 0;
	err = entry ? ferry_take(entry) : 0;
	if (!err)
		ferry_switch(entry);
	return err;
}

/**
 * ferry_list() - list the migrators, the selected one in brackets
 * @buf: a sysfs page
 *
 * Context: process context. Takes ferry_mutex.
 * Return: length of the text.
 */
ssize_t ferry_list(char *buf)
{
	struct ferry_entry *entry, *current_entry;
	ssize_t len;

	guard(mutex)(&ferry_mutex);
	current_entry = rcu_dereference_protected(ferry_current,
						  lockdep_is_held(&ferry_mutex));
	len = sysfs_emit(buf, current_entry ? "off" : "[off]");
	list_for_each_entry(entry, &ferry_migrators, list)
		len += sysfs_emit_at(buf, len,
				     entry == current_entry ? " [%s]" : " %s",
				     entry->ops->name);
	return len + sysfs_emit_at(buf, len, "\n");
}

static struct ferry_entry *ferry_entry_alloc(const struct ferry_migrator *migrator)
{
	struct ferry_entry *entry = kzalloc_obj(*entry);

	if (entry) {
		entry->ops = migrator;
		kobject_init(&entry->kobj, &ferry_entry_ktype);
	}
	return entry;
}

/**
 * ferry_register() - offer a migrator for selection
 * @migrator: its description; must stay in place until ferry_unregister()
 *
 * Context: process context. Takes ferry_mutex.
 * Return: 0, -EINVAL for a name that is no word or is reserved, -EEXIST for a name
 * in use, -ENODEV if there is no directory to show it in, -ENOMEM.
 */
int ferry_register(const struct ferry_migrator *migrator)
{
	struct ferry_entry *entry;
	int err;

	if (!ferry_ready)
		return -ENODEV;
	if (!migrator->copy || !*migrator->name || strpbrk(migrator->name, " /[]\n") ||
	    !strcmp(migrator->name, "off"))
		return -EINVAL;

	guard(mutex)(&ferry_mutex);
	if (ferry_find(migrator->name))
		return -EEXIST;
	if (ferry_sysfs_taken(migrator->name))
		return -EINVAL;
	entry = ferry_entry_alloc(migrator);
	if (!entry)
		return -ENOMEM;
	err = ferry_sysfs_add(entry);
	if (err) {
		kobject_put(&entry->kobj);
		return err;
	}
	list_add_tail(&entry->list, &ferry_migrators);
	return 0;
}
EXPORT_SYMBOL_GPL(ferry_register);

/**
 * ferry_unregister() - withdraw a migrator
 * @migrator: as given to ferry_register()
 *
 * When it returns no CPU is inside the migrator's copy() or its knobs, and none will
 * enter them. Must not be called from a knob of the migrator itself.
 *
 * Context: process context. Takes ferry_mutex, waits for batches in flight.
 */
void ferry_unregister(const struct ferry_migrator *migrator)
{
	struct ferry_entry *entry;

	guard(mutex)(&ferry_mutex);
	entry = ferry_find(migrator->name);
	if (WARN_ON_ONCE(!entry || entry->ops != migrator))
		return;
	if (entry == rcu_access_pointer(ferry_current))
		ferry_switch(ferry_find(ferry_kernel.name));
	list_del(&entry->list);
	ferry_sysfs_remove(entry);
	kobject_put(&entry->kobj);
}
EXPORT_SYMBOL_GPL(ferry_unregister);

static int __init ferry_init(void)
{
	int err = ferry_sysfs_init();

	if (err)
		return err;
	ferry_ready = true;
	return ferry_register(&ferry_kernel);
}
subsys_initcall(ferry_init);
