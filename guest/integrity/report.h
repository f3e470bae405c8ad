/* SPDX-License-Identifier: GPL-2.0 */
/* Results of integrity, as JSON lines and, with --ktap, as KTAP. */
#ifndef INTEGRITY_REPORT_H
#define INTEGRITY_REPORT_H

#include "folio.h"
#include "test_memory.h"

void report_begin(const struct options *options, unsigned int tests);

/* Report a kind of memory that this run does not test. */
void report_absent(const char *what, const char *reason);

/* Report a wrong byte (page, expected, found), count an error and stop the run. `by` is the test that fails. */
void report_wrong(struct test_memory *mem, const struct area *area, const struct mismatch *wrong,
		  const char *by);

/* Report any other failure, count an error and stop the run. */
void report_broken(struct test_memory *mem, const char *by, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

enum outcome { PASSED, FAILED, SKIPPED };

/* Report a test, a stressor or a check. `ops` < 0: not counted. `reason` of a skip or failure, or NULL. */
void report_test(const char *name, enum outcome outcome, int64_t ops, const char *reason);

#endif
