// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: /sys/kernel/mm/migration
 *
 * The directory, the selector, and the place of each migrator's counters and knobs. The
 * limits are policy.c's, the counters stats.c's. Documentation/ABI/testing/
 * sysfs-kernel-mm-migration describes every file.
 *
 * Lock order: ferry_mutex (core.c) -> sysfs active references. Removing a file waits for
 * its readers and writers; those of stats/ and of the knobs do not take ferry_mutex.
 */

#include <linux/export.h>
#include <linux/init.h>
#include <linux/kobject.h>
#include <linux/mm.h>
#include <linux/sysfs.h>

#include "internal.h"

static struct kobject *ferry_root;
static struct kobject *ferry_stats_root;

static ssize_t migrator_show(struct kobject *kobj, struct kobj_attribute *attr,
			     char *buf)
{
	return ferry_list(buf);
}

static ssize_t migrator_store(struct kobject *kobj, struct kobj_attribute *attr,
			      const char *buf, size_t count)
{
	int err = ferry_select(buf);

	return err ?: count;
}

static struct kobj_attribute migrator_attr = __ATTR_RW(migrator);

static int ferry_knobs_add(struct ferry_entry *entry)
{
	int err;

	if (!entry->ops->groups)
		return 0;
	entry->knobs = kobject_create_and_add(entry->ops->name, ferry_root);
	if (!entry->knobs)
		return -ENOMEM;
	err = sysfs_create_groups(entry->knobs, entry->ops->groups);
	if (err)
		kobject_put(entry->knobs);
	return err;
}

/**
 * ferry_sysfs_add() - show a migrator's counters and knobs
 * @entry: its entry, kobject initialised
 *
 * Context: process context, under ferry_mutex.
 * Return: 0 or a negative errno, with nothing left behind but @entry itself.
 */
int ferry_sysfs_add(struct ferry_entry *entry)
{
	int err = kobject_add(&entry->kobj, ferry_stats_root, "%s", entry->ops->name);

	if (err)
		return err;
	err = ferry_knobs_add(entry);
	if (err)
		kobject_del(&entry->kobj);
	return err;
}

/**
 * ferry_sysfs_remove() - take them away, and wait for their readers and writers
 * @entry: as given to ferry_sysfs_add()
 *
 * Context: process context, under ferry_mutex.
 */
void ferry_sysfs_remove(struct ferry_entry *entry)
{
	if (entry->knobs) {
		sysfs_remove_groups(entry->knobs, entry->ops->groups);
		kobject_put(entry->knobs);
	}
	kobject_del(&entry->kobj);
}

/**
 * ferry_show_words() - show a knob that is one of several words, the chosen one in brackets
 * @buf:	a sysfs page
 * @words:	the words
 * @nr:		their number
 * @chosen:	index of the chosen one
 *
 * Context: any.
 * Return: length of the text.
 */
ssize_t ferry_show_words(char *buf, const char * const *words, unsigned int nr,
			 unsigned int chosen)
{
	ssize_t len = 0;
	unsigned int i;

	for (i = 0; i < nr; i++)
		len += sysfs_emit_at(buf, len, i == chosen ? "%s[%s]" : "%s%s",
				     i ? " " : "", words[i]);
	return len + sysfs_emit_at(buf, len, "\n");
}
EXPORT_SYMBOL_GPL(ferry_show_words);

/**
 * ferry_sysfs_dir() - make a directory beside the selector
 * @name: its name
 *
 * Context: boot, after subsys_initcall.
 * Return: the directory, or NULL.
 */
struct kobject *ferry_sysfs_dir(const char *name)
{
	return ferry_root ? kobject_create_and_add(name, ferry_root) : NULL;
}

/**
 * ferry_sysfs_taken() - would a directory of knobs clash with a file of ours?
 * @name: the directory's
 *
 * Context: process context.
 * Return: true if so.
 */
bool ferry_sysfs_taken(const char *name)
{
	struct kernfs_node *node = sysfs_get_dirent(ferry_root->sd, name);
	bool taken = node && kernfs_type(node) != KERNFS_DIR;

	sysfs_put(node);
	/* Directories that are no migrator's; that of one is known by its registration. */
	return taken || !strcmp(name, "stats") || !strcmp(name, "migrc");
}

/**
 * ferry_sysfs_init() - make the directory
 *
 * Context: boot.
 * Return: 0 or a negative errno.
 */
int __init ferry_sysfs_init(void)
{
	ferry_root = kobject_create_and_add("migration", mm_kobj);
	if (!ferry_root)
		return -ENOMEM;
	ferry_stats_root = kobject_create_and_add("stats", ferry_root);
	if (!ferry_stats_root)
		return -ENOMEM;
	return sysfs_create_file(ferry_root, &migrator_attr.attr) ?:
	       sysfs_create_group(ferry_root, &ferry_policy_group);
}
