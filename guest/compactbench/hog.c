// SPDX-License-Identifier: GPL-2.0
#include "hog.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "util.h"

static pthread_t thread;
static _Atomic uint64_t iterations;
static atomic_bool stopping;

static void *spin(void *unused)
{
	(void)unused;
	/* Not a locked addition: nothing else writes the number. */
	for (uint64_t count = 1; !atomic_load_explicit(&stopping, memory_order_relaxed); count++)
		atomic_store_explicit(&iterations, count, memory_order_relaxed);
	return NULL;
}

void hog_start(void)
{
	int error;

	atomic_store(&iterations, 0);
	atomic_store(&stopping, false);
	/* It inherits the CPU that the caller is pinned to. */
	error = pthread_create(&thread, NULL, spin, NULL);
	if (error)
		die(EXIT_FAILED, "cannot start a thread (error %d)", error);
	while (!hog_iterations())
		sleep_ns(1000000);
}

void hog_stop(void)
{
	atomic_store(&stopping, true);
	pthread_join(thread, NULL);
}

uint64_t hog_iterations(void)
{
	return atomic_load_explicit(&iterations, memory_order_relaxed);
}
