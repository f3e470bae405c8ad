/* SPDX-License-Identifier: GPL-2.0 */
/* Threads that stay on one CPU. */
#ifndef GUEST_PINNED_H
#define GUEST_PINNED_H

#include <pthread.h>

/* How many CPUs this program may use. */
unsigned int cpus_usable(void);

/* Start a thread on the n-th of those CPUs, counting around. Ends the program if it cannot. */
pthread_t pinned_start(unsigned int n, void *(*run)(void *), void *argument);

#endif
