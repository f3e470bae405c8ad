/* SPDX-License-Identifier: GPL-2.0 */
/* A control group with the memory controller for each tenant, below the root of cgroup v2. */
#ifndef TIERBENCH_CGROUP_H
#define TIERBENCH_CGROUP_H

#include <stdbool.h>

/* False if cgroup v2 is not mounted at /sys/fs/cgroup, or lacks the memory controller: then there are no groups. */
bool cgroup_available(void);

/* Make the group of a tenant and move the calling process there. Ends the program with EXIT_FAILED if that fails. */
void cgroup_enter(unsigned int tenant);

/* Remove the group of a tenant that has ended. */
void cgroup_remove(unsigned int tenant);

#endif
