// SPDX-License-Identifier: GPL-2.0
#include "pinned.h"

#include <sched.h>

#include "quit.h"

static void usable(cpu_set_t *cpus)
{
	if (sched_getaffinity(0, sizeof(*cpus), cpus))
		quit(EXIT_FAILED, "cannot tell which CPUs there are: %m");
}

unsigned int cpus_usable(void)
{
	cpu_set_t cpus;

	usable(&cpus);
	return CPU_COUNT(&cpus);
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

pthread_t pinned_start(unsigned int n, void *(*run)(void *), void *argument)
{
	cpu_set_t all, one;
	pthread_attr_t attr;
	pthread_t thread;
	int cpu, error;

	usable(&all);
	cpu = nth_cpu(&all, n);
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	pthread_attr_init(&attr);
	pthread_attr_setaffinity_np(&attr, sizeof(one), &one);
	error = pthread_create(&thread, &attr, run, argument);
	pthread_attr_destroy(&attr);
	if (error)
		quit(EXIT_FAILED, "cannot start a thread on CPU %d (error %d)", cpu, error);
	return thread;
}
