/* SPDX-License-Identifier: GPL-2.0 */
/* The result of a test, from its report and the way its process ended. */
#ifndef STALE_TLB_RESULT_H
#define STALE_TLB_RESULT_H

#include "stale_tlb.h"
#include "util.h"

/* How the process of a test ended. */
enum exit_kind { EXIT_KIND_PASSED, EXIT_KIND_SKIPPED, EXIT_KIND_ERROR, EXIT_KIND_TIMEOUT };

struct result {
	enum exit_status status;	/* EXIT_PASSED, EXIT_FAILED or EXIT_MISSING */
	char reason[320];
};

struct result result_of(const struct test *test, const struct options *options, const struct report *report,
			enum exit_kind exit_kind);

#endif
