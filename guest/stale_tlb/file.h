/* SPDX-License-Identifier: GPL-2.0 */
/* The file that tests of files share with those of a child. */
#ifndef STALE_TLB_FILE_H
#define STALE_TLB_FILE_H

#include "fixture.h"

/* fixture_setup(), fixture_teardown() and setup() of a test: the pages are a file's, mapped shared and read-only. */
void file_fixture_setup(struct fixture *fx);
void file_fixture_teardown(struct fixture *fx);
void file_setup(struct fixture *fx);

/* Open the file for writing, write each page's word and close it. */
bool file_write(struct fixture *fx, uint64_t value);

#endif
