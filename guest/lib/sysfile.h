/* SPDX-License-Identifier: GPL-2.0 */
/* Files of one value, as sysfs and procfs have them. */
#ifndef GUEST_SYSFILE_H
#define GUEST_SYSFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first line without its newline; false and errno when it cannot be read. */
bool sysfile_read(const char *path, char *value, size_t size);

/* One write(2); false and errno when refused. */
bool sysfile_write(const char *path, const char *value);

/* The number behind "KEY " in a file of such lines, e.g. /proc/vmstat; 0 if the key is absent. */
uint64_t sysfile_counter(const char *path, const char *key);

/* Write a value and put the old one back when the program exits. Of "a [b] c" the old one is b. */
bool sysfile_set_until_exit(const char *path, const char *value);

/* After fork(): what the parent set is the parent's to put back. */
void sysfile_disown(void);

/* The word in brackets of "a [b] c", or the whole value where there are none. */
void sysfile_selected(const char *value, char *word, size_t size);

#endif
