/* SPDX-License-Identifier: GPL-2.0 */
/* The antagonists of one run and the actors that play them. */
#ifndef INTEGRITY_STRESSOR_SET_H
#define INTEGRITY_STRESSOR_SET_H

#include "worker.h"

#define MOST_MEMBERS 24

struct member {
	const struct antagonist *antagonist;
	const char *skip;		/* reason why it does not play, or NULL */
	uint64_t proof_before;
	struct actor *actors;
	unsigned int actor_count;
};

struct crew {
	struct member members[MOST_MEMBERS];
	size_t count;
};

/* Whether --only may have this name. */
bool stressor_known(const char *name);

/* The members that the options name. */
void crew_choose(struct crew *crew, const struct options *options);

void crew_start(struct crew *crew, struct arena *arena);
void crew_join(struct crew *crew);
void crew_finish(struct crew *crew, struct arena *arena);

/* Acts of one member so far. */
uint64_t member_acts(const struct member *member);

/* A line for each member; returns how many were skipped. */
unsigned int crew_report(const struct crew *crew, struct arena *arena);

#endif
