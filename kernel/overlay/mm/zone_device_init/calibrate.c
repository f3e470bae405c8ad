// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Choice between the slow path and non-temporal copies
 *
 * On most CPUs, non-temporal copies of a template are faster than the slow
 * path, which reads each line before it writes it. On others they may lose: an
 * arm64 CPU may treat STNP as an ordinary store, and a template that is copied
 * with ordinary stores can lose to the slow path. So the first chunks of each
 * range are trials. The CPUs that share the range initialise them alternately
 * by each method, and every later chunk takes the method with the shortest
 * trial. A chunk that is claimed before both methods have a result is copied
 * from the template.
 *
 * - A trial is useful work, on the CPUs and on the memory that the rest of the
 *   range uses, with as many CPUs at once. Calibration delays no helper. It
 *   costs the difference between the methods for MEMMAP_TRIALS / 2 chunks of
 *   128 MiB of device memory each, 0.4 % of a 100 GB device.
 * - The minimum excludes first faults, a cold TLB and preemption.
 * - The slow path leaves dirty lines in the cache, which are written back after
 *   its trial, at the expense of later chunks. So a trial favours the slow
 *   path, which is therefore taken only where it wins by more than an eighth.
 * - Nothing is remembered between ranges, so a result of one node, memory type
 *   or CPU type never decides for another.
 *
 * Locking: the caller serialises the calls for one calibration.
 */

#include "internal.h"

/* The slow path has to win by more than this part of its time. */
#define MEMMAP_FULL_BIAS	8

/**
 * memmap_calibrate_next() - method for the next chunk
 * @calib: trials of the range
 * @trial: receives whether the chunk is a trial
 *
 * Return: the method to try, or after all trials have begun, the fastest.
 */
enum memmap_method memmap_calibrate_next(struct memmap_calibration *calib,
					 bool *trial)
{
	u64 full = calib->best_ns[MEMMAP_FULL];

	*trial = calib->trials < MEMMAP_TRIALS;
	/* A range of one chunk is a single trial: of the likely winner. */
	if (*trial)
		return calib->trials++ % 2 ? MEMMAP_FULL : MEMMAP_NONTEMPORAL;
	if (full && full + full / MEMMAP_FULL_BIAS <
		    calib->best_ns[MEMMAP_NONTEMPORAL])
		return MEMMAP_FULL;
	return MEMMAP_NONTEMPORAL;
}

/**
 * memmap_calibrate_add() - add the result of a chunk
 * @calib: trials of the range
 * @method: how the chunk was initialised
 * @trial: whether it was a trial; otherwise, the result is ignored, because a
 *	minimum of more chunks would be shorter
 * @ns: time that it took
 */
void memmap_calibrate_add(struct memmap_calibration *calib,
			  enum memmap_method method, bool trial, u64 ns)
{
	if (!trial)
		return;
	calib->best_ns[method] = min_not_zero(calib->best_ns[method],
					      max(ns, 1));
}
