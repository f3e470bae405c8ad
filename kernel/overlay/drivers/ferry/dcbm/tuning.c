// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Values of the knobs and counters of dcbm
 *
 * sysfs.c and debugfs.c show them. All are single words, read and written
 * without a lock.
 */

#include "internal.h"

struct dcbm_tuning dcbm_tuning = {
	/* The batch copy series saw little gain beyond 8 to 12. */
	.channels = 16,
	.verify = DCBM_VERIFY_AUTO,
};

atomic64_t dcbm_counters[DCBM_NR_COUNTERS];
