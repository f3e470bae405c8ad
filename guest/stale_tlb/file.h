/* SPDX-License-Identifier: GPL-2.0 */
/* The file that file events and peers share. */
#ifndef STALE_TLB_FILE_H
#define STALE_TLB_FILE_H

#include "fixture.h"

/* What an event's open, close and arrange may be. */
void file_open(struct bed *bed);
void file_close(struct bed *bed);
void file_arrange(struct bed *bed);

/* Open it for writing, write each page's word, close it. */
bool file_write(struct bed *bed, uint64_t value);

#endif
