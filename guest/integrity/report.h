/* SPDX-License-Identifier: GPL-2.0 */
/* What integrity found, as JSON lines and, if asked for, as KTAP. */
#ifndef INTEGRITY_REPORT_H
#define INTEGRITY_REPORT_H

#include "folio.h"
#include "test_memory.h"

void report_begin(const struct options *options, unsigned int tests);

/* A kind of memory that this run does without. */
void report_absent(const char *what, const char *reason);

/* A wrong byte: names page, expected and found; counts as an error and ends the run. */
void report_wrong(struct test_memory *mem, const struct area *area, const struct mismatch *wrong,
		  const char *by);

/* Anything else that must not be; the same consequences. */
void report_broken(struct test_memory *mem, const char *by, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

enum outcome { PASSED, FAILED, SKIPPED };

/* One test: an stressor or a check. `ops` < 0: not counted. `reason` of a skip or failure, or NULL. */
void report_test(const char *name, enum outcome outcome, int64_t ops, const char *reason);

#endif
