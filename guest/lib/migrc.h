/* SPDX-License-Identifier: GPL-2.0 */
/* The kernel's deferral of TLB flushes, where it has one. */
#ifndef GUEST_MIGRC_H
#define GUEST_MIGRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "json.h"

#define MIGRC_DIR "/sys/kernel/mm/migration/migrc"

bool migrc_present(void);

/* A number below MIGRC_DIR, as "quarantined_bytes" or "counters/ptes"; false if this kernel has none. */
bool migrc_value(const char *name, uint64_t *value);

/* The same, 0 where there is none. */
uint64_t migrc_number(const char *name);

/* Until the program exits. False and errno if refused. */
bool migrc_set(const char *knob, const char *value);

/* For good. */
bool migrc_write(const char *knob, const char *value);

/*
 * Have what was put off done now: it belongs to the work that put it off. Returns what it took in ns,
 * 0 where nothing waited.
 */
uint64_t migrc_settle(void);

struct migrc_wish {
	int enabled;		/* 0, 1 or, to leave it as it is, -1 */
	size_t max_bytes;	/* of the quarantine; 0 leaves it as it is */
	unsigned int max_age_ms; /* the same */
};

/* Until the program exits. Ends it with EXIT_MISSING where something is wished of a kernel without migrc. */
void migrc_grant(const struct migrc_wish *wish);

/* Its bounds and what waits now, as keys that start with "migrc_"; none where there is no migrc. */
void migrc_print(struct json *json);

#endif
