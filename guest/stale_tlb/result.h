/* SPDX-License-Identifier: GPL-2.0 */
/* What a case's report and its process's end come to. */
#ifndef STALE_TLB_RESULT_H
#define STALE_TLB_RESULT_H

#include "stale_tlb.h"
#include "util.h"

/* How the case's process ended. */
enum ending { ENDED_WELL, ENDED_SKIPPED, ENDED_BADLY, ENDED_LATE };

struct verdict {
	enum exit_status status;	/* EXIT_PASSED, EXIT_FAILED or EXIT_MISSING */
	char reason[320];
};

struct verdict verdict_of(const struct event *event, const struct options *options, const struct report *report,
			  enum ending ending);

#endif
