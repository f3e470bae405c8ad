// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Migrators
 *
 * A migrator is a way to copy a batch of folios: with the calling CPU (kernel,
 * built in), with several CPUs, or with DMA engines. Drivers register any
 * number of migrators. The operator selects one for all reasons of migration,
 * and may select another for some; off selects none.
 *
 * Life cycle of a migrator:
 *
 *   1. ferry_register() adds it to the list, and its counters and knobs to
 *      sysfs.
 *   2. The first ferry_select() of it pins its module and calls its enable().
 *      Batches that began before finish with the migrator that was selected
 *      then.
 *   3. When nothing selects it any more, ferry_replace() waits until no batch
 *      can be inside its copy(), calls disable(), and only then unpins the
 *      module.
 *   4. ferry_unregister() makes reasons that still select it inherit, and
 *      the default select kernel. That is possible for a built-in one only,
 *      because a selected module is pinned. It then removes the migrator from
 *      sysfs.
 *
 * Locking: ferry_mutex protects the list and the selections. The order is
 * ferry_mutex -> sysfs active references of the migrator's files -> locks that
 * the functions of these files take.
 */

#include <linux/cleanup.h>
#include <linux/init.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "internal.h"

static LIST_HEAD(ferry_migrators);
static bool ferry_ready;		/* set once, at boot */

/**
 * ferry_find() - find a migrator by name
 * @name: the name; may end in a newline
 *
 * Context: process context, under ferry_mutex.
 * Return: its entry, or NULL.
 */
struct ferry_entry *ferry_find(const char *name)
{
	struct ferry_entry *entry;

	lockdep_assert_held(&ferry_mutex);
	list_for_each_entry(entry, &ferry_migrators, list)
		if (sysfs_streq(name, entry->ops->name))
			return entry;
	return NULL;
}

/**
 * ferry_entry_get() - use a migrator: pin and enable it for the first user
 * @entry: its entry
 *
 * Context: process context, under ferry_mutex.
 * Return: 0, -ENODEV if its module is going away, or an error of its enable().
 */
int ferry_entry_get(struct ferry_entry *entry)
{
	int err = 0;

	if (!entry->users) {
		if (!try_module_get(entry->ops->owner))
			return -ENODEV;
		err = entry->ops->enable ? entry->ops->enable() : 0;
		if (err)
			module_put(entry->ops->owner);
	}
	entry->users += !err;
	return err;
}

/**
 * ferry_entry_put() - end the use of a migrator
 * @entry: its entry; no batch of this user is inside copy()
 *
 * Context: process context, under ferry_mutex.
 */
void ferry_entry_put(struct ferry_entry *entry)
{
	if (--entry->users)
		return;
	if (entry->ops->disable)
		entry->ops->disable();
	module_put(entry->ops->owner);
}

/* Change a selection; @choice has a reference to its entry. */
static void ferry_replace(unsigned int index, struct ferry_choice choice)
{
	struct ferry_entry *old = ferry_choices[index].entry;

	ferry_switch(index, choice);
	if (old)
		ferry_entry_put(old);
}

/**
 * ferry_select() - select a migrator by name
 * @index:	a reason of migration, or FERRY_DEFAULT
 * @name:	name of a registered migrator, "off", or, for a reason,
 *		"inherit"; may end in a newline
 *
 * Context: process context. Takes ferry_mutex, waits for batches in flight.
 * Return: 0, -EINVAL for an unknown name, -ENODEV if its module is going away,
 * -ENOMEM, or an error of the migrator's enable(). On error the selection
 * stays.
 */
int ferry_select(unsigned int index, const char *name)
{
	struct ferry_choice choice = {};
	int err;

	guard(mutex)(&ferry_mutex);
	if (index != FERRY_DEFAULT && sysfs_streq(name, "inherit")) {
		choice.inherit = true;
	} else if (!sysfs_streq(name, "off")) {
		choice.entry = ferry_find(name);
		if (!choice.entry)
			return -EINVAL;
		err = ferry_batches_alloc() ?: ferry_entry_get(choice.entry);
		if (err)
			return err;
	}
	ferry_replace(index, choice);
	return 0;
}

static int ferry_word(char *buf, int len, const char *word, bool selected)
{
	return sysfs_emit_at(buf, len, selected ? "%s[%s]" : "%s%s",
			     len ? " " : "", word);
}

/**
 * ferry_list() - list what can be selected, the selected word in brackets
 * @index:	a reason of migration, or FERRY_DEFAULT
 * @buf:	a sysfs page
 *
 * Context: process context. Takes ferry_mutex.
 * Return: length of the text.
 */
ssize_t ferry_list(unsigned int index, char *buf)
{
	struct ferry_choice *choice = &ferry_choices[index];
	struct ferry_entry *entry;
	ssize_t len = 0;

	guard(mutex)(&ferry_mutex);
	if (index != FERRY_DEFAULT)
		len += ferry_word(buf, len, "inherit", choice->inherit);
	len += ferry_word(buf, len, "off", !choice->inherit && !choice->entry);
	list_for_each_entry(entry, &ferry_migrators, list)
		len += ferry_word(buf, len, entry->ops->name,
				  entry == choice->entry);
	return len + sysfs_emit_at(buf, len, "\n");
}

/**
 * ferry_register() - offer a migrator for selection
 * @migrator: its description; must stay in place until ferry_unregister()
 *
 * Context: process context. Takes ferry_mutex.
 * Return: 0, -EINVAL for a name that is not one word or is reserved, -EEXIST
 * for the name of a registered migrator, -ENODEV if sysfs has no directory for
 * it, -ENOMEM.
 */
int ferry_register(const struct ferry_migrator *migrator)
{
	struct ferry_entry *entry;
	int err;

	if (!ferry_ready)
		return -ENODEV;
	if (!migrator->copy || !*migrator->name ||
	    strpbrk(migrator->name, " /[]\n") ||
	    !strcmp(migrator->name, "off") ||
	    !strcmp(migrator->name, "inherit"))
		return -EINVAL;

	guard(mutex)(&ferry_mutex);
	if (ferry_find(migrator->name))
		return -EEXIST;
	if (ferry_sysfs_taken(migrator->name))
		return -EINVAL;
	entry = kzalloc_obj(*entry);
	if (!entry)
		return -ENOMEM;
	entry->ops = migrator;
	kobject_init(&entry->kobj, &ferry_entry_ktype);
	err = ferry_sysfs_add(entry);
	if (err)
		kobject_put(&entry->kobj);
	else
		list_add_tail(&entry->list, &ferry_migrators);
	return err;
}
EXPORT_SYMBOL_GPL(ferry_register);

/* Let the default select kernel, which has no enable(). */
static void ferry_fall_back(void)
{
	struct ferry_choice choice = { .entry = ferry_find(ferry_kernel.name) };

	ferry_entry_get(choice.entry);
	ferry_replace(FERRY_DEFAULT, choice);
}

/**
 * ferry_unregister() - withdraw a migrator
 * @migrator: as given to ferry_register()
 *
 * When this returns, no CPU is inside the migrator's copy() or its knobs, and
 * none enters them again. A knob of the migrator must not call it.
 *
 * Context: process context. Takes ferry_mutex, waits for batches in flight.
 */
void ferry_unregister(const struct ferry_migrator *migrator)
{
	struct ferry_entry *entry;
	unsigned int reason;

	guard(mutex)(&ferry_mutex);
	entry = ferry_find(migrator->name);
	if (WARN_ON_ONCE(!entry || entry->ops != migrator))
		return;
	for (reason = 0; reason < FERRY_NR_REASONS; reason++)
		if (entry == ferry_choices[reason].entry)
			ferry_replace(reason, (struct ferry_choice) {
				.inherit = true,
			});
	if (entry == ferry_choices[FERRY_DEFAULT].entry)
		ferry_fall_back();
	list_del(&entry->list);
	ferry_sysfs_remove(entry);
	kobject_put(&entry->kobj);
}
EXPORT_SYMBOL_GPL(ferry_unregister);

static ssize_t migrator_show(struct kobject *kobj, struct kobj_attribute *attr,
			     char *buf)
{
	return ferry_list(FERRY_DEFAULT, buf);
}

static ssize_t migrator_store(struct kobject *kobj, struct kobj_attribute *attr,
			      const char *buf, size_t count)
{
	return ferry_select(FERRY_DEFAULT, buf) ?: count;
}

static struct kobj_attribute migrator_attr = __ATTR_RW(migrator);

static int __init ferry_init(void)
{
	int err = ferry_rates_init() ?: ferry_sysfs_init(&migrator_attr.attr);

	if (err)
		return err;
	ferry_ready = true;
	return ferry_register(&ferry_kernel);
}
subsys_initcall(ferry_init);
