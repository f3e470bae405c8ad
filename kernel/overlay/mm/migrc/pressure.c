// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Memory pressure
 *
 * The quarantine is memory that could be free. A shrinker gives it back before reclaim
 * takes anything of use: it costs one flush, no I/O. kswapd calls it as it goes, and its
 * own demotions go on being deferred. Once a task has to reclaim by itself, memory is so
 * short that migrc pauses for a while.
 *
 * Lock order: as for migrc_drain(), called from within reclaim.
 */

#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/shrinker.h>
#include <linux/swap.h>

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

static unsigned long migrc_shrink_count(struct shrinker *shrinker,
					struct shrink_control *sc)
{
	return migrc_quarantined() ?: SHRINK_EMPTY;
}

static unsigned long migrc_shrink_scan(struct shrinker *shrinker,
				       struct shrink_control *sc)
{
	unsigned long pages = migrc_quarantined();

	if (!current_is_kswapd())
		WRITE_ONCE(migrc_paused_until, (jiffies + MIGRC_PAUSE) | 1);
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
