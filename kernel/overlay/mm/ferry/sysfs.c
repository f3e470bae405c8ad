// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: /sys/kernel/mm/migration
 *
 * The directory, its limits, and the directories of each migrator: its counters
 * in stats/, its knobs beside the selector. Those of reasons are in
 * reasons_sysfs.c.
 * Documentation/ABI/testing/sysfs-kernel-mm-migration describes every file.
 * Drivers make knobs and counters with the macros of linux/ferry_sysfs.h.
 *
 * Locking: ferry_mutex -> sysfs active references. The removal of a file waits
 * for the tasks that read or write it, so the functions of the files in stats/
 * and in the migrators' directories do not take ferry_mutex.
 */

#include <linux/err.h>
#include <linux/export.h>
#include <linux/init.h>
#include <linux/kernfs.h>
#include <linux/kobject.h>
#include <linux/kstrtox.h>
#include <linux/migrate.h>
#include <linux/mm.h>
#include <linux/sizes.h>
#include <linux/string.h>
#include <linux/sysfs.h>
#include <linux/time64.h>

#include "internal.h"

static struct kobject *ferry_root;
static struct kobject *ferry_stats_root;

static struct attribute *ferry_limit_attrs[] = {
	FERRY_KNOB_NUMBER(batch_min_bytes, &ferry_batch_min_bytes,
			  0, SZ_1G, NULL),
	FERRY_KNOB_NUMBER(batch_max_bytes, &ferry_batch_max_bytes,
			  512 * PAGE_SIZE, SZ_1G, NULL),
	FERRY_KNOB_NUMBER(batch_max_us, &ferry_batch_max_us,
			  1, USEC_PER_SEC, NULL),
	NULL,
};

static const struct attribute_group ferry_limit_group = {
	.attrs = ferry_limit_attrs,
};

/**
 * ferry_knob_show() - show a number, or all words and which is selected
 * @kobj:	the directory
 * @attr:	the file, of a struct ferry_knob
 * @buf:	a sysfs page
 *
 * Context: process context.
 * Return: length of the text.
 */
ssize_t ferry_knob_show(struct kobject *kobj, struct kobj_attribute *attr,
			char *buf)
{
	const struct ferry_knob *knob = to_ferry_knob(attr);
	unsigned long i, value = READ_ONCE(*knob->value);
	ssize_t len = 0;

	if (!knob->words)
		return sysfs_emit(buf, "%lu\n", value);
	for (i = 0; knob->words[i]; i++)
		len += sysfs_emit_at(buf, len, i == value ? "%s[%s]" : "%s%s",
				     i ? " " : "", knob->words[i]);
	return len + sysfs_emit_at(buf, len, "\n");
}
EXPORT_SYMBOL_GPL(ferry_knob_show);

/**
 * ferry_knob_store() - set a number within its bounds, or select a word
 * @kobj:	the directory
 * @attr:	the file, of a struct ferry_knob
 * @buf:	the text that was written
 * @count:	its length
 *
 * Context: process context. Calls the knob's @changed.
 * Return: @count, or -EINVAL with nothing changed.
 */
ssize_t ferry_knob_store(struct kobject *kobj, struct kobj_attribute *attr,
			 const char *buf, size_t count)
{
	const struct ferry_knob *knob = to_ferry_knob(attr);
	unsigned long value;

	if (knob->words) {
		int word = __sysfs_match_string(knob->words, -1, buf);

		if (word < 0)
			return -EINVAL;
		value = word;
	} else if (kstrtoul(buf, 10, &value) ||
		   value < knob->min || value > knob->max) {
		return -EINVAL;
	}
	WRITE_ONCE(*knob->value, value);
	if (knob->changed)
		knob->changed();
	return count;
}
EXPORT_SYMBOL_GPL(ferry_knob_store);

/**
 * ferry_counter_show() - show a counter
 * @kobj:	the directory
 * @attr:	the file, of a struct ferry_knob with a @counter
 * @buf:	a sysfs page
 *
 * Context: process context.
 * Return: length of the text.
 */
ssize_t ferry_counter_show(struct kobject *kobj, struct kobj_attribute *attr,
			   char *buf)
{
	return sysfs_emit(buf, "%lld\n",
			  atomic64_read(to_ferry_knob(attr)->counter));
}
EXPORT_SYMBOL_GPL(ferry_counter_show);

/**
 * ferry_sysfs_dir() - make a directory beside the selector
 * @name:	its name, which no migrator can register from then on
 * @groups:	its files
 *
 * kobject_del() and kobject_put() remove the directory with its files.
 *
 * Context: process context, after subsys_initcall.
 * Return: the directory, or an ERR_PTR().
 */
struct kobject *ferry_sysfs_dir(const char *name,
				const struct attribute_group **groups)
{
	struct kobject *dir;
	int err;

	if (!ferry_root)
		return ERR_PTR(-ENODEV);
	dir = kobject_create_and_add(name, ferry_root);
	if (!dir)
		return ERR_PTR(-ENOMEM);
	err = sysfs_create_groups(dir, groups);
	if (!err)
		return dir;
	kobject_put(dir);
	return ERR_PTR(err);
}

/**
 * ferry_stats_dir() - make a directory in stats/
 * @name: its name
 *
 * Context: process context, after subsys_initcall.
 * Return: the directory, or an ERR_PTR().
 */
struct kobject *ferry_stats_dir(const char *name)
{
	if (!ferry_stats_root)
		return ERR_PTR(-ENODEV);
	return kobject_create_and_add(name, ferry_stats_root) ?:
	       ERR_PTR(-ENOMEM);
}

/**
 * ferry_sysfs_files() - add files beside the selector, and their counters
 * @knobs:	the files
 * @stats:	a directory of counters in stats/
 *
 * Context: process context, after subsys_initcall.
 * Return: 0 or a negative errno.
 */
int ferry_sysfs_files(const struct attribute_group *knobs,
		      const struct attribute_group *stats)
{
	if (!ferry_root)
		return -ENODEV;
	return sysfs_create_group(ferry_root, knobs) ?:
	       sysfs_create_group(ferry_stats_root, stats);
}

/**
 * ferry_sysfs_taken() - check for a file or directory beside the selector
 * @name: its name
 *
 * Context: process context.
 * Return: true if there is one.
 */
bool ferry_sysfs_taken(const char *name)
{
	struct kernfs_node *node = sysfs_get_dirent(ferry_root->sd, name);

	sysfs_put(node);
	return node;
}

static int ferry_stats_add(struct ferry_entry *entry)
{
	unsigned int reason;
	int err;

	err = kobject_add(&entry->kobj, ferry_stats_root, "%s",
			  entry->ops->name);
	for (reason = 0; reason < FERRY_NR_REASONS && !err; reason++)
		err = kobject_init_and_add(&entry->stats[reason].kobj,
					   &ferry_stats_ktype, &entry->kobj,
					   "%s", migrate_reason_names[reason]);
	return err;
}

static void ferry_stats_remove(struct ferry_entry *entry)
{
	unsigned int reason;

	for (reason = 0; reason < FERRY_NR_REASONS; reason++) {
		struct kobject *kobj = &entry->stats[reason].kobj;

		if (!kobj->state_initialized)
			break;
		kobject_del(kobj);
		kobject_put(kobj);
	}
	kobject_del(&entry->kobj);
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
	const struct ferry_migrator *ops = entry->ops;
	int err = ferry_stats_add(entry);

	if (!err && ops->groups) {
		entry->knobs = ferry_sysfs_dir(ops->name, ops->groups);
		err = PTR_ERR_OR_ZERO(entry->knobs);
	}
	if (err)
		ferry_stats_remove(entry);
	return err;
}

/**
 * ferry_sysfs_remove() - remove a migrator's counters and knobs
 * @entry: as given to ferry_sysfs_add()
 *
 * Waits for their readers and writers.
 *
 * Context: process context, under ferry_mutex.
 */
void ferry_sysfs_remove(struct ferry_entry *entry)
{
	if (entry->knobs) {
		kobject_del(entry->knobs);
		kobject_put(entry->knobs);
	}
	ferry_stats_remove(entry);
}

/**
 * ferry_sysfs_init() - make /sys/kernel/mm/migration
 * @migrator: the file that selects a migrator
 *
 * Context: boot.
 * Return: 0 or a negative errno.
 */
int __init ferry_sysfs_init(const struct attribute *migrator)
{
	ferry_root = kobject_create_and_add("migration", mm_kobj);
	if (!ferry_root)
		return -ENOMEM;
	ferry_stats_root = kobject_create_and_add("stats", ferry_root);
	if (!ferry_stats_root)
		return -ENOMEM;
	return sysfs_create_file(ferry_root, migrator) ?:
	       sysfs_create_group(ferry_root, &ferry_limit_group);
}
