/* SPDX-License-Identifier: GPL-2.0 */
/* Files of one value, as sysfs and procfs have them; settings that come back at exit; those of THP and KSM. */
#ifndef GUEST_SYSFS_H
#define GUEST_SYSFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The first line without its newline; false and errno if it cannot be read. (libnuma.a has a sysfs_read() of its own,
 * which a static link would find twice.)
 */
bool sysfs_read_line(const char *path, char *value, size_t size);

/* The number in a file; 0 if it cannot be read. */
uint64_t sysfs_number(const char *path);

/* One write(2); false and errno if the kernel refuses it. */
bool sysfs_write(const char *path, const char *value);

/* The number behind "KEY " in a file of such lines, e.g. /proc/vmstat; 0 if the key is absent. */
uint64_t sysfs_counter(const char *path, const char *key);

/*
 * Write a value; the old one is written back when the program exits, the newest setting first. Of "a [b] c" the old
 * value is b. False and errno if the kernel refuses the value.
 */
bool sysfs_set_until_exit(const char *path, const char *value);

/* Write the old value of such a setting back now, if there is one. */
void sysfs_restore(const char *path);

/* In a child, after fork(): the parent writes its settings back, not the child. */
void sysfs_disown(void);

/* The word in brackets of "a [b] c", or the whole value where there are none. */
void sysfs_selected(const char *value, char *word, size_t size);

#define THP_DIR "/sys/kernel/mm/transparent_hugepage"
#define THP_SPLIT_FILE "/sys/kernel/debug/split_huge_pages"

/*
 * Until the program exits, memory under MADV_HUGEPAGE may get folios of this size. False and errno if the kernel cannot
 * make them.
 */
bool thp_allow(size_t folio_bytes, bool shmem);

/* The same, and folios of no other size, because the kernel takes the largest that is allowed. */
bool thp_allow_only(size_t folio_bytes, bool shmem);

#define KSM_DIR "/sys/kernel/mm/ksm/"

/*
 * Until the program exits, ksmd scans many pages and rests for so many ms; `merge` starts it. False and errno if the
 * kernel refuses.
 */
bool ksm_scan_fast(bool merge, unsigned int rest_ms);

#endif
