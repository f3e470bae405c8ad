/* SPDX-License-Identifier: GPL-2.0 */
/* The kernel's deferral of TLB flushes, where it has one. */
#ifndef GUEST_MIGRC_H
#define GUEST_MIGRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MIGRC_DIR "/sys/kernel/mm/migration/migrc"

struct migrc_wish {
	int enabled;		/* 0, 1 or, to leave it as it is, -1 */
	size_t max_bytes;	/* of the quarantine; 0 leaves it as it is */
};

/* Until the program exits. Ends it with EXIT_MISSING where something is wished of a kernel without migrc. */
void migrc_set(const struct migrc_wish *wish);

/* The number in one of its files; false if this kernel has none. */
bool migrc_value(const char *name, uint64_t *value);

#endif
