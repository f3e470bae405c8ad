/* SPDX-License-Identifier: GPL-2.0 */
/* Antagonists, which get in the way of migration, and actors: the threads that play them. */
#ifndef INTEGRITY_WORKER_H
#define INTEGRITY_WORKER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "test_memory.h"

struct actor;

struct antagonist {
	const char *name;
	/* Set the stage; NULL or the reason why this antagonist cannot play here. Optional. */
	const char *(*prepare)(struct arena *arena);
	/* Do it once; false if there was nothing to do, e.g. the page was another's. */
	bool (*act)(struct actor *actor);
	/* After all actors have gone. Optional. */
	void (*finish)(struct arena *arena);
	bool many;			/* played by --threads actors, else by one */
	bool eager;			/* acts again at once; the others rest, and leave it CPUs and locks */
	/* Counters of /proc/vmstat one of which must have grown, or nothing of the kind has happened. */
	const char *proof[2];
};

struct actor {
	const struct antagonist *antagonist;
	struct arena *arena;
	void *scratch;			/* SPAN_PAGES pages that nobody moves */
	atomic_uint_fast64_t acts;
	uint64_t random;
	pthread_t thread;
};

/* A random number below `limit`. */
uint32_t actor_random(struct actor *actor, uint32_t limit);

/* Let others run, for up to 2 ms: about the time in which a batch of pages is moved. */
void actor_pause(struct actor *actor);

void actor_start(struct actor *actor, const struct antagonist *antagonist, struct arena *arena,
		 uint64_t seed);

/* Wait for the end of an actor whose arena is told to stop. Stuck: EXIT_FAILED. */
void actor_join(struct actor *actor);

#endif
