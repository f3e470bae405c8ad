// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Fault injection
 *
 * /sys/kernel/debug/migrc/fault_inject names the steps of migrc to leave out
 * from now on, so that a test can check that it detects their absence. A read
 * lists all words, the chosen ones in brackets. A write replaces the choice by
 * the words written; an empty line clears it.
 */

#include <linux/bitops.h>
#include <linux/debugfs.h>
#include <linux/init.h>
#include <linux/mm.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "internal.h"

#define MIGRC_LINE	256

static const char * const migrc_words[MIGRC_NR_FAULTS] = {
	[MIGRC_WRITE_FAULT] = "write_fault",
	[MIGRC_SWAP_FAULT] = "swap_fault",
	[MIGRC_PROTECT] = "protect",
	[MIGRC_GUP] = "gup",
	[MIGRC_MIXED] = "mixed",
	[MIGRC_FAILURE] = "failure",
	[MIGRC_DRAIN] = "pages",
	[MIGRC_FILE] = "file_open",
	[MIGRC_FAIL_FILE_RECHECK] = "file_recheck",
	[MIGRC_FAIL_ENTRY] = "entry",
	[MIGRC_FAIL_TABLE] = "table",
	[MIGRC_FAIL_PENDING] = "pending",
	[MIGRC_FAIL_FORK] = "fork",
	[MIGRC_FAIL_QUARANTINE] = "quarantine",
	[MIGRC_FAIL_DRAIN] = "drain",
	[MIGRC_FAIL_GENERATION] = "generation",
};

static int fault_inject_show(struct seq_file *m, void *v)
{
	unsigned int i;

	for (i = 0; i < MIGRC_NR_FAULTS; i++) {
		if (migrc_words[i])
			seq_printf(m, migrc_should_fail(i) ? "[%s] " : "%s ",
				   migrc_words[i]);
	}
	seq_putc(m, '\n');
	return 0;
}

static int migrc_parse(char *line, unsigned long *faults)
{
	char *word;

	while ((word = strsep(&line, " ,\n"))) {
		unsigned int i;

		if (!*word)
			continue;
		for (i = 0; i < MIGRC_NR_FAULTS; i++) {
			if (migrc_words[i] && !strcmp(word, migrc_words[i]))
				break;
		}
		if (i == MIGRC_NR_FAULTS)
			return -EINVAL;
		*faults |= BIT(i);
	}
	return 0;
}

static ssize_t fault_inject_write(struct file *file, const char __user *user,
				  size_t count, loff_t *pos)
{
	unsigned long faults = 0;
	char line[MIGRC_LINE];
	int err;

	if (count >= sizeof(line))
		return -EINVAL;
	if (copy_from_user(line, user, count))
		return -EFAULT;
	line[count] = '\0';
	err = migrc_parse(line, &faults);
	if (err)
		return err;
	WRITE_ONCE(migrc_faults, faults);
	migrc_check_report_rearm();
	return count;
}
DEFINE_SHOW_STORE_ATTRIBUTE(fault_inject);

static int __init migrc_debugfs_init(void)
{
	struct dentry *dir = debugfs_create_dir("migrc", NULL);

	debugfs_create_file("fault_inject", 0600, dir, NULL,
			    &fault_inject_fops);
	debugfs_create_atomic_t("violations", 0400, dir, &migrc_violations);
	return 0;
}
late_initcall(migrc_debugfs_init);
