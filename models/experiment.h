/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the models have in common: faults, and states that must be reached. Each has a number, by a #define fail_NAME or
 * see_NAME. The fault is chosen when the search starts, by its number in the environment variable FAULT, so that one
 * program makes all searches; or by spin's option -DFAULT=fail_NAME, which the replay of a trail needs. With spin
 * -DREACH=see_NAME that state is a violation, whose trail is a path to it.
 */
c_decl {
\#include <stdio.h>
\#include <stdlib.h>
static char seen[256];
}

#ifdef FAULT
#define choose_fault()	skip
#define should_fail(what)	(FAULT == fail_##what)
#else
byte fault;
#define choose_fault()	c_code { now.fault = getenv("FAULT") ? atoi(getenv("FAULT")) : 0; }
#define should_fail(what)	(fault == fail_##what)
#endif

#ifdef REACH
#define reached(what)	assert(REACH != see_##what)
#else
#define reached(what)	c_code { if (!seen[see_##what]) { seen[see_##what] = 1; printf("reached %d\n", see_##what); } }
#endif
#define reached_if(what, condition)	if :: (condition) -> reached(what) :: else fi
