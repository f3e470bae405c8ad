/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LINUX_FERRY_SYSFS_H
#define _LINUX_FERRY_SYSFS_H

#include <linux/atomic.h>
#include <linux/kobject.h>
#include <linux/sysfs.h>
#include <linux/types.h>

/**
 * struct ferry_knob - one file of a directory in /sys/kernel/mm/migration
 * @attr:	name, mode, and the functions that show and store the value
 * @value:	the number, or the index of the selected word in @words
 * @counter:	the count that ferry_counter_show() shows
 * @id:		for a show function of the owner's for several files
 * @min:	least number that a write may set
 * @max:	greatest number that a write may set
 * @words:	accepted words, NULL-terminated; NULL for a number
 * @changed:	called after a write has set @value, without a lock; or NULL
 *
 * The owner lists its files, made by the macros below, in the array of struct
 * attribute pointers of a struct attribute_group. A write that is out of bounds
 * or is no word of the list fails with -EINVAL and changes nothing. Readers of
 * @value use READ_ONCE(): a write may happen at any time.
 */
struct ferry_knob {
	struct kobj_attribute attr;
	union {
		unsigned long *value;
		atomic64_t *counter;
		unsigned int id;
	};
	unsigned long min;
	unsigned long max;
	const char * const *words;
	void (*changed)(void);
};

#define to_ferry_knob(_attr)	container_of(_attr, struct ferry_knob, attr)

/* A file with functions of the owner's, as in struct kobj_attribute. */
#define FERRY_KNOB(_name, _mode, _show, _store, ...)			\
	(&((struct ferry_knob[]) { {					\
		.attr = __ATTR(_name, _mode, _show, _store),		\
		##__VA_ARGS__						\
	} })[0].attr.attr)

/* A number from _min to _max in the unsigned long at _value. */
#define FERRY_KNOB_NUMBER(_name, _value, _min, _max, _changed)		\
	FERRY_KNOB(_name, 0644, ferry_knob_show, ferry_knob_store,	\
		   .value = _value, .min = _min, .max = _max,		\
		   .changed = _changed)

/* A word of _words; the unsigned long at _value is the selected one's index. */
#define FERRY_KNOB_WORDS(_name, _value, _words, _changed)		\
	FERRY_KNOB(_name, 0644, ferry_knob_show, ferry_knob_store,	\
		   .value = _value, .words = _words, .changed = _changed)

/* The atomic64_t at _counter, read-only. */
#define FERRY_COUNTER(_name, _counter)					\
	FERRY_KNOB(_name, 0444, ferry_counter_show, NULL, .counter = _counter)

/*
 * A set of counters is one list of enum constants and file names, from which
 * the owner derives the enum and the files. TYPE makes something of each entry,
 * and _last ends the list:
 *
 *	#define FOO_COUNTERS(TYPE, _last) {	\
 *		TYPE(FOO_ERRORS, errors)	\
 *		TYPE(FOO_BYTES, bytes)		\
 *		_last				\
 *	}
 *
 *	enum foo_counter FOO_COUNTERS(FERRY_COUNTER_ID, FOO_NR_COUNTERS);
 *
 *	static atomic64_t foo_counters[FOO_NR_COUNTERS];
 *
 *	#define FOO_FILE(_id, _name) FERRY_COUNTER(_name, &foo_counters[_id]),
 *	static struct attribute *foo_attrs[] = FOO_COUNTERS(FOO_FILE, NULL);
 */
#define FERRY_COUNTER_ID(_id, ...)	_id,

ssize_t ferry_knob_show(struct kobject *kobj, struct kobj_attribute *attr,
			char *buf);
ssize_t ferry_knob_store(struct kobject *kobj, struct kobj_attribute *attr,
			 const char *buf, size_t count);
ssize_t ferry_counter_show(struct kobject *kobj, struct kobj_attribute *attr,
			   char *buf);
struct kobject *ferry_sysfs_dir(const char *name,
				const struct attribute_group **groups);
int ferry_sysfs_files(const struct attribute_group *knobs,
		      const struct attribute_group *stats);

#endif /* _LINUX_FERRY_SYSFS_H */
