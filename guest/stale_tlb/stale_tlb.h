/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Litmus tests of a deferred TLB flush. A reader on another CPU holds TLB entries of pages that are then moved, their
 * flush deferred by migrc. An event follows that changes what the addresses may show, and once it is over the reader
 * looks again: it must never see what was there before.
 */
#ifndef STALE_TLB_H
#define STALE_TLB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "migration.h"
#include "reader.h"

#define PAGES 8			/* of a round, unless the event says otherwise */

struct bed;

/* What the reader may see after an event. */
enum sees {
	SEES_OLD = 1,
	SEES_NEW = 2,
	SEES_ZERO = 4,
	SEES_FAULT = 8,
};

/*
 * One kind of event. A round is: arrange() lets the bed hold bed->old, mapped read-only; the reader reads it; the
 * pages move to the other node; act() is the event and writes bed->fresh through it; the reader reads again. Or it is
 * round().
 */
struct event {
	const char *name;
	const char *what;
	size_t pages;
	unsigned int sees;		/* enum sees */
	/* Least share of the rounds, in percent: whose flush was deferred; in which the event was what it claims. */
	unsigned int deferred;
	unsigned int acted;
	bool never_deferred;
	bool in_place;			/* it acted only if the first page's frame is the same afterwards */
	bool sleeps;			/* the reader sleeps while the event happens */
	bool hidden;			/* only by its name */
	bool machine;			/* it takes CPUs, memory or settings from the whole machine */
	void (*open)(struct bed *bed);
	void (*arrange)(struct bed *bed);
	bool (*act)(struct bed *bed);
	void (*round)(struct bed *bed);
	void (*close)(struct bed *bed);
};

struct options {
	const char *tests;
	const char *except;		/* names, or NULL */
	unsigned int rounds;
	unsigned int limit_s;		/* for one event */
	int nodes[2];
	const char *dir;		/* for files */
	uint64_t seed;
	bool until_stale;		/* stale data is what is hoped for */
	bool off;			/* no deferral, as a control */
	bool machine;			/* a guest of one's own, which may be treated so */
	bool ktap;
	bool list;
};

/* What a case found out: in memory shared with the parent, which gives the verdict. */
struct report {
	uint64_t rounds, deferred, acted, stale, broken, moved;
	char reason[256];		/* the first thing that went wrong, or why it was skipped */
};

struct bed {
	const struct event *event;
	const struct options *options;
	struct report *report;
	struct reader *reader;
	struct moveset set;
	char *base;
	size_t pages;
	size_t step;			/* bytes of a folio, for move_pages(2) */
	size_t before, after;		/* pages beside them that move along, see bed_pad() */
	int cpus[4];			/* main's, a worker's, a peer's, the reader's; some are the same on few */
	unsigned int cpu_count;
	uint64_t old, fresh;
	uint64_t random;
	bool was_deferred;		/* by the last bed_move() */
	size_t moved;
};

extern const struct event anon_events[], file_events[], window_events[], reuse_events[], race_events[], large_events[],
	merge_events[], uffd_events[], swap_events[], peer_events[], failure_events[], hotplug_events[],
	limit_events[], probe_events[];

#endif
