// SPDX-License-Identifier: GPL-2.0
#include "hog.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "util.h"

static atomic_uint running;

static void *spin(void *unused)
{
	(void)unused;
	atomic_fetch_add(&running, 1);
	for (volatile uint64_t i = 0;; i++)
		;
	return NULL;
}

void hogs_start(unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		pthread_detach(cpu_pin_start(i, spin, NULL));
	while (atomic_load(&running) < count)
		sleep_ns(1000000);
}
