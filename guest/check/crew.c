// SPDX-License-Identifier: GPL-2.0
#include "crew.h"

#include <stdlib.h>
#include <string.h>

#include "../antagonists/antagonists.h"
#include "mover.h"
#include "quit.h"
#include "report.h"
#include "sysfile.h"

static const struct antagonist *const all[] = {
	&read_antagonist, &write_antagonist, &fork_antagonist, &mlock_antagonist,
	&mprotect_antagonist, &ksm_antagonist, &swap_antagonist, &split_antagonist,
	&readfile_antagonist, &writefile_antagonist, &readdisk_antagonist, &writedisk_antagonist,
	&vmsplice_antagonist, &odirect_antagonist, &uring_antagonist,
};

#define ALL_COUNT (sizeof(all) / sizeof(*all))

static void add(struct crew *crew, const struct antagonist *antagonist)
{
	crew->members[crew->count++] = (struct member){ .antagonist = antagonist };
}

static bool same_name(const char *name, const char *listed, size_t length)
{
	return strlen(name) == length && !strncmp(name, listed, length);
}

static bool is_listed(const char *name, const char *list)
{
	for (; *list; list += strcspn(list, ",") + (strchr(list, ',') != NULL))
		if (same_name(name, list, strcspn(list, ",")))
			return true;
	return false;
}

static void require_known(const char *list)
{
	for (;;) {
		size_t length = strcspn(list, ","), i = 0;

		while (i < ALL_COUNT && !same_name(all[i]->name, list, length))
			i++;
		if (i == ALL_COUNT)
			quit(EXIT_USAGE, "--only: there is no antagonist '%.*s'; see integrity --help",
			     (int)length, list);
		if (!list[length])
			return;
		list += length + 1;
	}
}

void crew_choose(struct crew *crew, const struct options *options)
{
	add(crew, &mover);
	if (options->only)
		require_known(options->only);
	/* In this order whatever order they are named in: it is that of coming, and back that of going. */
	for (size_t i = 0; i < ALL_COUNT; i++)
		if (!options->only || is_listed(all[i]->name, options->only))
			add(crew, all[i]);
	if (options->flip)
		add(crew, &flip_antagonist);
}

static uint64_t proof(const struct antagonist *antagonist)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < 2 && antagonist->proof[i]; i++)
		sum += sysfile_counter("/proc/vmstat", antagonist->proof[i]);
	return sum;
}

static unsigned int actors_wanted(const struct antagonist *antagonist, const struct options *options)
{
	if (antagonist == &mover)
		return options->movers;
	return antagonist->many ? options->threads : 1;
}

static void start_member(struct member *member, struct arena *arena, unsigned int number)
{
	const struct antagonist *antagonist = member->antagonist;

	member->proof_before = proof(antagonist);
	member->actor_count = actors_wanted(antagonist, arena->options);
	member->actors = calloc(member->actor_count, sizeof(*member->actors));
	if (!member->actors)
		quit(EXIT_FAILED, "no memory for actors");
	/* 64 actors at most play one antagonist, so each gets a seed of its own. */
	for (unsigned int i = 0; i < member->actor_count; i++)
		actor_start(&member->actors[i], antagonist, arena,
			    arena->options->seed * 4096 + number * 64 + i);
}

void crew_start(struct crew *crew, struct arena *arena)
{
	/* All stages are set before the first actor moves. */
	for (size_t i = 0; i < crew->count; i++) {
		struct member *member = &crew->members[i];

		if (member->antagonist->prepare)
			member->skip = member->antagonist->prepare(arena);
	}
	for (size_t i = 0; i < crew->count; i++)
		if (!crew->members[i].skip)
			start_member(&crew->members[i], arena, i);
}

void crew_join(struct crew *crew)
{
	for (size_t i = 0; i < crew->count; i++)
		for (unsigned int j = 0; j < crew->members[i].actor_count; j++)
			actor_join(&crew->members[i].actors[j]);
}

void crew_finish(struct crew *crew, struct arena *arena)
{
	/*
	 * Last come, first gone. It matters: merged pages that are still swapped out when KSM unmerges
	 * come back merged, and then nothing can find who maps them, or move them.
	 */
	for (size_t i = crew->count; i--;) {
		struct member *member = &crew->members[i];

		if (!member->skip && member->antagonist->finish)
			member->antagonist->finish(arena);
	}
}

uint64_t member_acts(const struct member *member)
{
	uint64_t acts = 0;

	for (unsigned int i = 0; i < member->actor_count; i++)
		acts += atomic_load(&member->actors[i].acts);
	return acts;
}

static const char *idle_reason(const struct member *member)
{
	const struct antagonist *antagonist = member->antagonist;

	if (member->skip)
		return member->skip;
	if (!member_acts(member))
		return "it never got to act";
	if (antagonist->proof[0] && proof(antagonist) == member->proof_before)
		return "the kernel counted nothing of the kind";
	return NULL;
}

unsigned int crew_report(const struct crew *crew, struct arena *arena)
{
	unsigned int skipped = 0;

	for (size_t i = 0; i < crew->count; i++) {
		const struct member *member = &crew->members[i];
		const char *idle = idle_reason(member);
		/* Without moves nothing is tested at all, so that one may not be skipped. */
		bool must = member->antagonist == &mover;

		if (idle && must)
			report_broken(arena, "move", "%s", idle);
		report_test(member->antagonist->name, !idle ? PASSED : must ? FAILED : SKIPPED,
			    member_acts(member), idle);
		skipped += idle && !must;
	}
	return skipped;
}
