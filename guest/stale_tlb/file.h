/* SPDX-License-Identifier: GPL-2.0 */
/* The file that file events and peers share. */
#ifndef STALE_TLB_FILE_H
#define STALE_TLB_FILE_H

#include "fixture.h"

/* What an event's open, close and arrange may be. */
void file_fixture_setup(struct fixture *fx);
void file_fixture_teardown(struct fixture *fx);
void file_setup(struct fixture *fx);

/* Open it for writing, write each page's word, close it. */
bool file_write(struct fixture *fx, uint64_t value);

#endif
