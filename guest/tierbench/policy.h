/* SPDX-License-Identifier: GPL-2.0 */
/* Who moves memory between the nodes. */
#ifndef TIERBENCH_POLICY_H
#define TIERBENCH_POLICY_H

#include <sys/types.h>

#include "options.h"

/*
 * Before the memory is allocated: until the program exits, the kernel promotes and demotes by this policy and no other.
 * Ends the program with EXIT_MISSING if it cannot.
 */
void policy_apply(const struct options *options);

/* Once the memory is there: let the policy find it, if it is one that has to be told whose it is. */
void policy_watch(const struct options *options, const pid_t *pids, unsigned int count);

#endif
