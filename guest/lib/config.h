/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One configuration to compare: a label and settings, e.g. "mtcopy2:mtcopy/threads=2,migrator=mtcopy". A setting is a
 * file below /sys/kernel/mm/migration or, with "debugfs:" before, below /sys/kernel/debug.
 */
#ifndef GUEST_CONFIG_H
#define GUEST_CONFIG_H

#include <stddef.h>

#define MAX_CONFIGS 32
#define MAX_WRITES 8

struct config {
	char label[64];
	char text[512];			/* holds path and value of each write */
	struct {
		const char *path;
		const char *value;
	} writes[MAX_WRITES];
	size_t write_count;
};

struct config_list {
	struct config all[MAX_CONFIGS];
	size_t count;
};

/* Add one to a struct config_list, for OPT_CALL. Ends the program with EXIT_USAGE if the text is malformed. */
void config_list_add(void *list, const char *text);

/*
 * Write the settings, in their order, and write those of the configuration before it back that this one has not. Ends
 * the program with EXIT_USAGE if the kernel refuses a value, EXIT_MISSING if it has no such file.
 */
void config_apply(const struct config *config);

/* Try each one, so that the program ends before time is spent. */
void config_list_try(const struct config_list *list);

#endif
