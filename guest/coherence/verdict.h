/* SPDX-License-Identifier: GPL-2.0 */
/* What a case's report and its process's end come to. */
#ifndef LITMUS_VERDICT_H
#define LITMUS_VERDICT_H

#include "litmus.h"
#include "quit.h"

/* How the case's process ended. */
enum ending { ENDED_WELL, ENDED_SKIPPED, ENDED_BADLY, ENDED_LATE };

struct verdict {
	enum exit_status status;	/* EXIT_PASSED, EXIT_FAILED or EXIT_MISSING */
	char reason[320];
};

struct verdict verdict_of(const struct event *event, const struct options *options, const struct report *report,
			  enum ending ending);

#endif
