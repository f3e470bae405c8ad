/* SPDX-License-Identifier: GPL-2.0 */
/* The policies by which the kernel moves memory between the nodes. */
#ifndef TIERBENCH_POLICY_H
#define TIERBENCH_POLICY_H

#include "options.h"

/*
 * Until the program exits, the kernel promotes and demotes by this policy and no other. Ends the program with
 * EXIT_MISSING if it cannot.
 */
void policy_apply(const struct options *options);

#endif
