/* SPDX-License-Identifier: GPL-2.0 */
/* The control files of migrc. */
#ifndef LITMUS_MIGRC_H
#define LITMUS_MIGRC_H

#include <stdbool.h>
#include <stdint.h>

#include "migrator.h"

#define MIGRC_DIR MIGRATION_DIR "/migrc"

bool migrc_present(void);

/* A number below MIGRC_DIR, as "quarantined_bytes" or "counters/ptes"; 0 where there is none. */
uint64_t migrc_number(const char *name);

/* Until the program exits. False and errno if refused. */
bool migrc_set(const char *knob, const char *value);

/* For good. */
bool migrc_write(const char *knob, const char *value);

#endif
