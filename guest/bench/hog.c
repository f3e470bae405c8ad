// SPDX-License-Identifier: GPL-2.0
#include "hog.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>

#include "clock.h"
#include "quit.h"

static atomic_uint burning;

static void *burn(void *unused)
{
	(void)unused;
	atomic_fetch_add(&burning, 1);
	for (volatile uint64_t i = 0;; i++)
		;
	return NULL;
}

/* The n-th CPU of the set, counting around. */
static int nth_cpu(const cpu_set_t *cpus, unsigned int n)
{
	int cpu = -1;

	for (n %= CPU_COUNT(cpus), n++; n; n--)
		do
			cpu++;
		while (!CPU_ISSET(cpu, cpus));
	return cpu;
}

static void start_on(int cpu)
{
	pthread_attr_t attr;
	pthread_t thread;
	cpu_set_t one;
	int error;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	pthread_attr_init(&attr);
	pthread_attr_setaffinity_np(&attr, sizeof(one), &one);
	error = pthread_create(&thread, &attr, burn, NULL);
	pthread_attr_destroy(&attr);
	if (error)
		quit(EXIT_FAILED, "cannot start a hog on CPU %d (error %d)", cpu, error);
	pthread_detach(thread);
}

void hogs_start(unsigned int count)
{
	cpu_set_t cpus;

	if (!count)
		return;
	if (sched_getaffinity(0, sizeof(cpus), &cpus))
		quit(EXIT_FAILED, "cannot tell which CPUs there are: %m");
	for (unsigned int i = 0; i < count; i++)
		start_on(nth_cpu(&cpus, i));
	while (atomic_load(&burning) < count)
		sleep_ns(1000000);
}
