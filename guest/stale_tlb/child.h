/* SPDX-License-Identifier: GPL-2.0 */
/* A process that shares the bed's pages, has its own TLB entries of them, and does as it is told. */
#ifndef STALE_TLB_CHILD_H
#define STALE_TLB_CHILD_H

/* What `litmus --exit` is for: something to exec. */
#define PEER_EXEC_OPTION "--exit"

#endif
