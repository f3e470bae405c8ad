// SPDX-License-Identifier: GPL-2.0
#include "worker.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "span.h"

/* No act takes seconds, even emulated and on a debug kernel: whoever takes this long hangs. */
#define STUCK_SECONDS 120

/*
 * Most rest between two acts. Without it more than ten threads queue for the mmap lock and for two
 * CPUs, and pages hardly move at all: a batch waits at every one of its pages.
 */
#define REST_NS 10000000

uint32_t actor_random(struct actor *actor, uint32_t limit)
{
	return (xorshift64(&actor->random) >> 32) * limit >> 32;
}

void actor_pause(struct actor *actor)
{
	sleep_ns(actor_random(actor, 2000000));
}

static void *play(void *data)
{
	struct actor *actor = data;

	while (!atomic_load_explicit(&actor->arena->stop, memory_order_relaxed)) {
		if (actor->antagonist->act(actor))
			atomic_fetch_add_explicit(&actor->acts, 1, memory_order_relaxed);
		else
			sched_yield();
		if (!actor->antagonist->eager)
			sleep_ns(actor_random(actor, REST_NS));
	}
	return NULL;
}

static void *private_pages(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		die(EXIT_FAILED, "no memory for an actor: %m");
	return memory;
}

void actor_start(struct actor *actor, const struct antagonist *antagonist, struct arena *arena,
		 uint64_t seed)
{
	int error;

	actor->antagonist = antagonist;
	actor->arena = arena;
	actor->scratch = private_pages(SPAN_PAGES * PAGE_BYTES);
	/* An odd factor spreads small seeds over all bits; | 1 because 0 would stay 0. */
	actor->random = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15) | 1;
	error = pthread_create(&actor->thread, NULL, play, actor);
	if (error)
		die(EXIT_FAILED, "cannot start %s: %s", antagonist->name, strerror(error));
}

void actor_join(struct actor *actor)
{
	struct timespec deadline;

	clock_gettime(CLOCK_REALTIME, &deadline);
	deadline.tv_sec += STUCK_SECONDS;
	if (pthread_timedjoin_np(actor->thread, NULL, &deadline))
		die(EXIT_FAILED, "'%s' has not come back from an act for %d s", actor->antagonist->name,
		     STUCK_SECONDS);
	munmap(actor->scratch, SPAN_PAGES * PAGE_BYTES);
}
