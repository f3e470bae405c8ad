// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Memory pressure
 *
 * The quarantine is memory that one flush, without I/O, makes free:
 *
 *   - kswapd drains it before kswapd checks the watermarks of its node, because
 *     otherwise kswapd would demote or evict as many pages again as are in
 *     quarantine. kswapd does not drain less than a batch: if it wakes often to
 *     demote a few pages, it would flush each time.
 *   - Direct reclaim drains it by a shrinker, but does not queue behind another
 *     drain. The shrinker reports nothing
 *     while the node has as much free memory as kswapd wants for allocations:
 *     proactive reclaim, which demotes cold pages, would otherwise flush for
 *     every few pages that it demotes.
 *   - If direct reclaim makes no progress, migrc_reclaim() drains the
 *     quarantine before the OOM killer runs: shrinkers check nodes, and a
 *     single zone may be empty.
 *
 * If a node is below its min watermark, where tasks have to reclaim directly,
 * or if direct reclaim made no progress, migrc pauses for MIGRC_PAUSE.
 *
 * Locking: as for migrc_drain(), called from within reclaim.
 */

#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/shrinker.h>
#include <linux/vmstat.h>

#include "internal.h"

#define MIGRC_PAUSE	HZ

static unsigned long migrc_paused_until;

/**
 * migrc_paused() - check whether memory was short within MIGRC_PAUSE
 *
 * Context: any.
 * Return: true if no flush is to be deferred.
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
void __migrc_balance(int nid)
{
	if (migrc_node_quarantined(nid) >= MIGRC_BATCH_PAGES)
		__migrc_drain(MIGRC_PRESSURE);
}

/* See migrc_reclaim(). */
unsigned long __migrc_reclaim(void)
{
	unsigned long pages = migrc_quarantined();

	/* Pairs with the barrier of migrc_take(): no drain hides its pages. */
	smp_rmb();
	pages += migrc_being_freed();
	if (!pages)
		return 0;
	migrc_pause();
	/* Unlike the shrinker this waits for what another drain frees. */
	__migrc_drain(MIGRC_DRAIN);
	return pages;
}

/*
 * Check the zones that user allocations may use. Low zones keep a reserve, and
 * often have much free memory.
 */
static bool migrc_node_is_below(int nid, enum zone_watermarks mark)
{
	struct zone *zone;

	for_each_populated_zone(zone) {
		if (zone_to_nid(zone) == nid &&
		    zone_watermark_ok(zone, 0, wmark_pages(zone, mark),
				      MAX_NR_ZONES - 1, 0))
			return false;
	}
	return true;
}

static unsigned long migrc_shrink_count(struct shrinker *shrinker,
					struct shrink_control *sc)
{
	if (!migrc_node_is_below(sc->nid, WMARK_HIGH))
		return SHRINK_EMPTY;
	return migrc_node_quarantined(sc->nid) ?: SHRINK_EMPTY;
}

static unsigned long migrc_shrink_scan(struct shrinker *shrinker,
				       struct shrink_control *sc)
{
	unsigned long pages = migrc_node_quarantined(sc->nid);

	if (migrc_node_is_below(sc->nid, WMARK_MIN))
		migrc_pause();
	if (!pages)
		return SHRINK_STOP;
	__migrc_drain(MIGRC_PRESSURE);
	sc->nr_scanned = pages;
	return pages;
}

static int __init migrc_reclaim_init(void)
{
	struct shrinker *shrinker = shrinker_alloc(SHRINKER_NUMA_AWARE,
						   "mm-migrc");

	if (!shrinker)
		return -ENOMEM;
	shrinker->count_objects = migrc_shrink_count;
	shrinker->scan_objects = migrc_shrink_scan;
	shrinker->seeks = 0;	/* all at once, at each priority */
	shrinker->batch = 1;
	shrinker_register(shrinker);
	return 0;
}
subsys_initcall(migrc_reclaim_init);
