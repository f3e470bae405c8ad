// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Migrators
 *
 * A migrator is a way to copy a batch of folios: with the calling CPU (kernel,
 * built in), with several CPUs, or with DMA engines. Drivers register any
 * number of migrators. The operator selects at most one; off selects none.
 *
 * Life cycle of a migrator:
 *
 *   1. ferry_register() adds it to the list, and its counters and knobs to
 *      sysfs.
 *   2. ferry_select() pins its module, calls its enable() and directs the
 *      static call of the copy phase to its copy(). Batches that began before
 *      finish with the migrator that was selected then.
 *   3. When another is selected, ferry_replace() waits until no batch can be
 *      inside the old copy(), calls disable(), and only then unpins the module.
 *   4. ferry_unregister() selects kernel if the migrator is still selected,
 *      which is possible for a built-in one only, because a selected module is
 *      pinned. It then removes the migrator from sysfs.
 *
 * Locking: ferry_mutex protects the list and the selection. The order is
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

static struct ferry_entry *ferry_find(const char *name)
{
	struct ferry_entry *entry;

	lockdep_assert_held(&ferry_mutex);
	list_for_each_entry(entry, &ferry_migrators, list)
		if (sysfs_streq(name, entry->ops->name))
			return entry;
	return NULL;
}

/* Select @entry, which is enabled and pinned, and release the old migrator. */
static void ferry_replace(struct ferry_entry *entry)
{
	struct ferry_entry *old = ferry_switch(entry);

	/* Those of the old one, whose last batch has ended. */
	ferry_rates_forget();
	if (!old)
		return;
	if (old->ops->disable)
		old->ops->disable();
	module_put(old->ops->owner);
}

/**
 * ferry_select() - select a migrator by name
 * @name: name of a registered migrator, or "off"; may end in a newline
 *
 * Context: process context. Takes ferry_mutex, waits for batches in flight.
 * Return: 0, -EINVAL for an unknown name, -ENODEV if its module is going away,
 * -ENOMEM, or an error of the migrator's enable(). On error the selection
 * stays.
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
	if (entry) {
		if (!try_module_get(entry->ops->owner))
			return -ENODEV;
		err = entry->ops->enable ? entry->ops->enable() : 0;
		if (err) {
			module_put(entry->ops->owner);
			return err;
		}
	}
	ferry_replace(entry);
	return 0;
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
	struct ferry_entry *entry, *selected;
	ssize_t len;

	guard(mutex)(&ferry_mutex);
	selected = rcu_dereference_protected(ferry_current,
					     lockdep_is_held(&ferry_mutex));
	len = sysfs_emit(buf, selected ? "off" : "[off]");
	list_for_each_entry(entry, &ferry_migrators, list)
		len += sysfs_emit_at(buf, len,
				     entry == selected ? " [%s]" : " %s",
				     entry->ops->name);
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
	    strpbrk(migrator->name, " /[]\n") || !strcmp(migrator->name, "off"))
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

	guard(mutex)(&ferry_mutex);
	entry = ferry_find(migrator->name);
	if (WARN_ON_ONCE(!entry || entry->ops != migrator))
		return;
	if (entry == rcu_access_pointer(ferry_current))
		ferry_replace(ferry_find(ferry_kernel.name));
	list_del(&entry->list);
	ferry_sysfs_remove(entry);
	kobject_put(&entry->kobj);
}
EXPORT_SYMBOL_GPL(ferry_unregister);

static ssize_t migrator_show(struct kobject *kobj, struct kobj_attribute *attr,
			     char *buf)
{
	return ferry_list(buf);
}

static ssize_t migrator_store(struct kobject *kobj, struct kobj_attribute *attr,
			      const char *buf, size_t count)
{
	return ferry_select(buf) ?: count;
}

static struct kobj_attribute migrator_attr = __ATTR_RW(migrator);

static int __init ferry_init(void)
{
	int err = ferry_sysfs_init(&migrator_attr.attr);

	if (err)
		return err;
	ferry_ready = true;
	return ferry_register(&ferry_kernel);
}
subsys_initcall(ferry_init);
