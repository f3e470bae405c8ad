// SPDX-License-Identifier: GPL-2.0
#include "tenants.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cgroup.h"
#include "sysfs.h"
#include "tiering.h"
#include "touch.h"
#include "util.h"

#define POLL_NS 1000000

/* In memory that this program and all tenants share; what a tenant writes is in cache lines of its own. */
struct shared {
	atomic_bool touching;
	atomic_uint shift;
	struct tenant {
		_Alignas(64) atomic_bool resting;
		struct histogram histogram;
	} tenant[MAX_TENANTS];
};

static struct shared *shared;
static struct tenants_memory memory;
static pid_t pids[MAX_TENANTS];
static unsigned int tenant_count;
static bool in_cgroups;
static pid_t owner;

/* A touch begins when the one before has ended, so one reading of the clock serves both. */
static void touch_until_paused(struct touched *touched, struct histogram *histogram)
{
	static unsigned int renewed;
	uint64_t start = clock_ns(), end;

	while (atomic_load_explicit(&shared->touching, memory_order_relaxed)) {
		unsigned int shift = atomic_load_explicit(&shared->shift, memory_order_relaxed);
		size_t page = touch_choose(touched, shift);

		if (memory.renew_on >= 0 && shift != renewed) {
			renewed = shift;
			touch_renew(touched, shift);
			start = clock_ns();
		}
		if (!touch_page(touched, page))
			die(EXIT_FAILED, "page %zu of a tenant does not hold what the tenant wrote there", page);
		end = clock_ns();
		histogram_add(histogram, end - start);
		start = end;
	}
}

static void *touch_memory(void *data)
{
	struct tenant *tenant = data;
	struct touched touched;

	touch_open(&touched, memory.bytes, memory.hot_bytes, tenant - shared->tenant + 1);
	for (;;) {
		atomic_store(&tenant->resting, true);
		while (!atomic_load(&shared->touching))
			sleep_ns(POLL_NS);
		atomic_store(&tenant->resting, false);
		touch_until_paused(&touched, &tenant->histogram);
	}
	return NULL;
}

static _Noreturn void run_tenant(unsigned int number)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sysfs_disown();
	if (in_cgroups)
		cgroup_enter(number);
	/* Else new pages would come from the slow node, and kswapd would sleep. */
	if (memory.renew_on >= 0)
		tiering_hold(memory.renew_on);
	/* The first CPU is left to the kernel's threads that move memory. */
	pthread_join(cpu_pin_start(number + 1, touch_memory, &shared->tenant[number]), NULL);
	_exit(EXIT_FAILED);
}

/* At the end of the program; a tenant that ends runs it, too. */
static void end_tenants(void)
{
	if (getpid() != owner)
		return;
	for (unsigned int i = 0; i < tenant_count; i++) {
		if (pids[i]) {
			kill(pids[i], SIGKILL);
			waitpid(pids[i], NULL, 0);
		}
		if (in_cgroups)
			cgroup_remove(i);
	}
}

void tenants_check(void)
{
	for (unsigned int i = 0; i < tenant_count; i++)
		if (waitpid(pids[i], NULL, WNOHANG)) {
			pids[i] = 0;
			die(EXIT_FAILED, "tenant %u of %u has ended", i, tenant_count);
		}
}

static void wait_for(bool resting)
{
	for (unsigned int i = 0; i < tenant_count; i++)
		while (atomic_load(&shared->tenant[i].resting) != resting) {
			tenants_check();
			sleep_ns(POLL_NS);
		}
}

void tenants_start(unsigned int count, const struct tenants_memory *each, bool cgroups)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		die(EXIT_FAILED, "mmap: %m");
	memory = *each;
	in_cgroups = cgroups;
	owner = getpid();
	atexit(end_tenants);
	for (unsigned int i = 0; i < count; i++) {
		pid_t pid = fork();

		if (pid < 0)
			die(EXIT_FAILED, "fork: %m");
		if (!pid)
			run_tenant(i);
		pids[tenant_count++] = pid;
	}
	wait_for(true);
}

void tenants_resume(void)
{
	for (unsigned int i = 0; i < tenant_count; i++)
		shared->tenant[i].histogram = (struct histogram){ 0 };
	atomic_store(&shared->touching, true);
	wait_for(false);
}

void tenants_shift(void)
{
	atomic_fetch_add(&shared->shift, 1);
}

void tenants_pause(void)
{
	atomic_store(&shared->touching, false);
	wait_for(true);
}

const struct histogram *tenant_histogram(unsigned int tenant)
{
	return &shared->tenant[tenant].histogram;
}
