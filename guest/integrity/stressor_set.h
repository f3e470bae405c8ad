/* SPDX-License-Identifier: GPL-2.0 */
/* The stressors of one run and their workers. */
#ifndef INTEGRITY_STRESSOR_SET_H
#define INTEGRITY_STRESSOR_SET_H

#include "worker.h"

#define MOST_ENTRIES 24

struct stressor_entry {
	const struct stressor *stressor;
	const char *skip;		/* the reason why it does not run, or NULL */
	uint64_t vmstat_before;
	struct worker *workers;
	unsigned int worker_count;
};

struct stressor_set {
	struct stressor_entry entries[MOST_ENTRIES];
	size_t count;
};

/* Return true if --only accepts this name. */
bool stressor_known(const char *name);

/* Add the mover and the stressors that the options select. */
void stressor_set_init(struct stressor_set *set, const struct options *options);

void stressor_set_start(struct stressor_set *set, struct test_memory *mem);
void stressor_set_join(struct stressor_set *set);
void stressor_set_finish(struct stressor_set *set, struct test_memory *mem);

/* Return the number of operations that the workers of an entry have done. */
uint64_t stressor_entry_ops(const struct stressor_entry *entry);

/* Report a test for each entry; return the number of skipped ones. */
unsigned int stressor_set_report(const struct stressor_set *set, struct test_memory *mem);

#endif
