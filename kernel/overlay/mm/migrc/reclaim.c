// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Memory pressure
 *
 * The quarantine is memory that could be free, at the cost of one flush, without I/O:
 *
 *   - kswapd drains before it looks whether its node has enough, or it would demote, or
 *     evict, as much again as waits here. But for less than a batch: one that wakes often, to
 *     demote a little, would flush each time.
 *   - Who reclaims directly comes by a shrinker. It has nothing to give while the node has
 *     as much free memory as kswapd wants for allocations: who reclaims ahead of need, to
 *     demote what is cold, would flush for each few pages that it demotes.
 *   - Who found nothing to reclaim takes what is here before the OOM killer is asked
 *     (migrc_reclaim()): shrinkers look at nodes, and a zone may be empty alone.
 *
 * Once a node is below its lowest watermark, where tasks have to reclaim by themselves, or
 * nothing was to be had, migrc pauses for a while.
 *
 * Lock order: as for migrc_drain(), called from within reclaim.
 */

#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/shrinker.h>
#include <linux/vmstat.h>

#include "internal.h"

#define MIGRC_PAUSE	HZ

static unsigned long migrc_paused_until;

/**
 * migrc_paused() - has memory been short a moment ago?
 *
 * Context: any.
 * Return: true if nothing is to be deferred.
 */
bool migrc_paused(void)
{
	unsigned long until = READ_ONCE(migrc_paused_until);

	if (!until)
		return false;
	if (time_before(jiffies, until))
		return true;
	WRITE_ONCE(migrc_paused_until, 0);
	return false;
}

static void migrc_pause(void)
{
	WRITE_ONCE(migrc_paused_until, (jiffies + MIGRC_PAUSE) | 1);
}

/* See migrc_balance(). */
void __migrc_balance(void)
{
	if (migrc_quarantined() >= MIGRC_BATCH_PAGES)
		__migrc_drain(MIGRC_PRESSURE);
}

/* See migrc_reclaim(). */
unsigned long __migrc_reclaim(void)
{
	unsigned long pages = migrc_quarantined();

	if (!pages)
		return 0;
	migrc_pause();
	__migrc_drain(MIGRC_PRESSURE);
	return pages;
}

/* Of what a program may have: low zones keep a reserve, and often have much free. */
static bool migrc_node_is_below(int nid, enum zone_watermarks mark)
{
	struct zone *zone;

	for_each_populated_zone(zone) {
		if (zone_to_nid(zone) == nid &&
		    zone_watermark_ok(zone, 0, wmark_pages(zone, mark), MAX_NR_ZONES - 1, 0))
			return false;
	}
	return true;
}

static unsigned long migrc_shrink_count(struct shrinker *shrinker,
					struct shrink_control *sc)
{
	if (!migrc_node_is_below(sc->nid, WMARK_HIGH))
		return SHRINK_EMPTY;
	return migrc_quarantined() ?: SHRINK_EMPTY;
}

static unsigned long migrc_shrink_scan(struct shrinker *shrinker,
				       struct shrink_control *sc)
{
	unsigned long pages = migrc_quarantined();

	if (migrc_node_is_below(sc->nid, WMARK_MIN))
		migrc_pause();
	if (!pages)
		return SHRINK_STOP;
	__migrc_drain(MIGRC_PRESSURE);
	sc->nr_scanned = pages;
	return pages;
}

static int __init migrc_pressure_init(void)
{
	struct shrinker *shrinker = shrinker_alloc(0, "mm-migrc");

	if (!shrinker)
		return -ENOMEM;
	shrinker->count_objects = migrc_shrink_count;
	shrinker->scan_objects = migrc_shrink_scan;
	shrinker->seeks = 0;	/* all at once, whatever the priority */
	shrinker->batch = 1;
	shrinker_register(shrinker);
	return 0;
}
subsys_initcall(migrc_pressure_init);
