// SPDX-License-Identifier: GPL-2.0
#include "util.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void die(enum exit_status status, const char *format, ...)
{
	char line[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	fflush(stdout);
	fprintf(stderr, "%s: %s\n", program_invocation_short_name, line);
	exit(status);
}

static void get_usable(cpu_set_t *cpus)
{
	if (sched_getaffinity(0, sizeof(*cpus), cpus))
		die(EXIT_FAILED, "cannot read the CPU affinity: %m");
}

unsigned int cpus_usable(void)
{
	cpu_set_t cpus;

	get_usable(&cpus);
	return CPU_COUNT(&cpus);
}

void cpu_pin(int cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus))
		die(EXIT_FAILED, "cannot run on CPU %d: %m", cpu);
}

pthread_t cpu_pin_start(unsigned int n, void *(*run)(void *), void *argument)
{
	cpu_set_t usable, one;
	pthread_attr_t attr;
	pthread_t thread;
	int cpu = -1, error;

	get_usable(&usable);
	for (n %= CPU_COUNT(&usable), n++; n; n--)
		do
			cpu++;
		while (!CPU_ISSET(cpu, &usable));
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	pthread_attr_init(&attr);
	pthread_attr_setaffinity_np(&attr, sizeof(one), &one);
	error = pthread_create(&thread, &attr, run, argument);
	pthread_attr_destroy(&attr);
	if (error)
		die(EXIT_FAILED, "cannot start a thread on CPU %d (error %d)", cpu, error);
	return thread;
}
