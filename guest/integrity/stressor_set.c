// SPDX-License-Identifier: GPL-2.0
#include "stressor_set.h"

#include <numaif.h>
#include <stdlib.h>
#include <string.h>

#include "cmdline.h"
#include "migration.h"
#include "report.h"
#include "span.h"
#include "stressors/stressors.h"
#include "sysfs.h"

/* The mover: it moves pages between the nodes, in batches large and small, and claims none of them. */

static size_t largest_area_pages(const struct arena *arena)
{
	size_t largest = 0;

	for (size_t i = 0; i < arena->count; i++)
		if (arena->areas[i].pages > largest)
			largest = arena->areas[i].pages;
	return largest;
}

static void pick_batch(struct actor *actor, struct span *span)
{
	/* Large batches are what is new; small ones hit single pages at odd moments. */
	uint32_t most = actor_random(actor, 4) ? UINT32_MAX : SPAN_PAGES;

	span_pick(actor, span, ~0u, 0, most);
}

/* The node that the span's first page is not on; either if the page is not mapped. */
static int other_node(struct actor *actor, const struct span *span)
{
	const int *nodes = actor->arena->options->nodes;
	void *page = span_address(span);
	int where;

	if (move_pages(0, 1, &page, NULL, &where, 0) || where < 0)
		return nodes[actor_random(actor, 2)];
	return where == nodes[0] ? nodes[1] : nodes[0];
}

static bool move(struct actor *actor)
{
	/* Each mover has its own arrays, for as long as it lives. */
	static _Thread_local struct moveset set;
	struct arena *arena = actor->arena;
	struct span span;
	size_t step = PAGE_BYTES;

	if (!set.pages)
		moveset_init(&set, NULL, largest_area_pages(arena) * PAGE_BYTES, PAGE_BYTES);
	pick_batch(actor, &span);
	/* One address a folio makes the largest batches; one a page also names tail pages. */
	if (actor_random(actor, 4) && span.area->folio_bytes <= span_bytes(&span))
		step = span.area->folio_bytes;
	moveset_retarget(&set, span_address(&span), span_bytes(&span), step);
	moveset_move(&set, other_node(actor, &span), MPOL_MF_MOVE_ALL, false);
	atomic_fetch_add(&arena->moves, 1);
	return true;
}

static const struct antagonist mover = {
	.name = "move", .act = move, .eager = true, .proof = { "pgmigrate_success" },
};

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

bool stressor_known(const char *name)
{
	for (size_t i = 0; i < ALL_COUNT; i++)
		if (!strcmp(all[i]->name, name))
			return true;
	return false;
}

void crew_choose(struct crew *crew, const struct options *options)
{
	add(crew, &mover);
	/* In this order whatever order they are named in: it is that of coming, and back that of going. */
	for (size_t i = 0; i < ALL_COUNT; i++)
		if (!options->only || cmdline_in_list(options->only, all[i]->name))
			add(crew, all[i]);
	if (options->switch_migrator)
		add(crew, &flip_antagonist);
}

static uint64_t proof(const struct antagonist *antagonist)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < 2 && antagonist->proof[i]; i++)
		sum += sysfs_counter("/proc/vmstat", antagonist->proof[i]);
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
		die(EXIT_FAILED, "no memory for actors");
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
