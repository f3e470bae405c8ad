/* SPDX-License-Identifier: GPL-2.0 */
/* The kernel's migration of pages: move_pages(2), the migrator that copies, and migrc, which defers TLB flushes. */
#ifndef GUEST_MIGRATION_H
#define GUEST_MIGRATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "json.h"

#define MIGRATION_DIR "/sys/kernel/mm/migration"

/* The argument arrays of move_pages(2), allocated once so that a timed call builds nothing. */
struct moveset {
	void **pages;
	int *nodes;
	int *status;
	size_t count;
};

struct move_result {
	uint64_t at;		/* when it began, by clock_ns() */
	uint64_t ns;		/* inside move_pages(2) */
	size_t moved;		/* entries that are on the node afterwards */
	size_t failed;		/* entries that are not */
	/* The first entry that failed, and its errno. */
	size_t first_failed;
	int first_error;
};

/* One entry for every `step` bytes; room for `bytes / step` of them. */
void moveset_init(struct moveset *set, char *base, size_t bytes, size_t step);
void moveset_free(struct moveset *set);

/* Let the set name other memory, not larger than it was made for. */
void moveset_retarget(struct moveset *set, char *base, size_t bytes, size_t step);

/* Add other memory behind what the set names; all together is not larger than it was made for. */
void moveset_add(struct moveset *set, char *base, size_t bytes, size_t step);

/*
 * Move all entries to `node`, `per_call` of them a call, or all in one call if that is 0. `flags` are move_pages(2)'s. If
 * the call fails with an errno that is not a page's own, the program ends with EXIT_FAILED.
 */
struct move_result moveset_move(struct moveset *set, int node, int flags, size_t per_call);

/* After moveset_move(): keep only the entries that are not on `node`. */
void moveset_keep_failed(struct moveset *set, int node);

/* Bring the entries into a random order, the same at each run of the program. */
void moveset_shuffle(struct moveset *set);

#define MAX_MIGRATORS 16

/* The words of the file `migrator`: "[off] kernel mtcopy". */
struct migrators {
	char names[MAX_MIGRATORS][32];
	size_t count;
	size_t selected;	/* index */
};

/* False and errno if this kernel has no such file. */
bool migrators_list(struct migrators *migrators);

/* Index of a name, or -1. */
int migrators_find(const struct migrators *migrators, const char *name);

/* Until the program exits. False and errno (EINVAL: no such migrator) if the kernel refuses. */
bool migrator_select(const char *name);

/* What a migrator has copied since boot, and for how long. */
struct copied {
	uint64_t bytes;
	uint64_t ns;
};

/* Of the migrator that is selected; zeros if that is off, or if the kernel does not count. */
struct copied migrator_copied(void);

/* Pages moved in runs since boot; 0 if this kernel has no runs. */
uint64_t moved_in_runs(void);

/* What migrators and runs have done since boot, in pages. */
struct migration_pages {
	uint64_t copied[MAX_MIGRATORS];	/* by each migrator, in the order of migrators_list() */
	uint64_t in_runs;
};

/* `reason` is the only reason of migration whose copies count, "" if all do. Runs are not counted by reason. */
void migration_pages_read(struct migration_pages *pages, const char *reason);

/*
 * The difference between two readings: moved_in_runs, and copied_NAME_pages of each migrator, behind the selected
 * migrator and runs; no key if this kernel has no migrators.
 */
void migration_pages_print(struct json *json, const struct migration_pages *before,
			   const struct migration_pages *after);

#define MIGRC_DIR MIGRATION_DIR "/migrc"

bool migrc_present(void);

/* A number below MIGRC_DIR, as "quarantined_bytes" or "counters/ptes"; false if this kernel has none. */
bool migrc_value(const char *name, uint64_t *value);

/* The same, 0 where there is none. */
uint64_t migrc_number(const char *name);

/* Until the program exits. False and errno if the kernel refuses. */
bool migrc_set(const char *knob, const char *value);

/* The same, and the value stays. */
bool migrc_write(const char *knob, const char *value);

/*
 * Let the kernel do the deferred flushes now: their time belongs to the work that deferred them. Returns that time in
 * ns, 0 if no flush was pending.
 */
uint64_t migrc_drain(void);

struct migrc_config {
	int enabled;		/* 0, 1 or, to leave it as it is, -1 */
	size_t max_bytes;	/* of the quarantine; 0 leaves it as it is */
	unsigned int max_age_ms; /* of a page in it; 0 leaves it as it is */
};

/* Until the program exits. Ends it with EXIT_MISSING if anything is to be set on a kernel without migrc. */
void migrc_apply(const struct migrc_config *config);

/* Its bounds and the bytes in quarantine, as keys that start with "migrc_"; no key if the kernel has no migrc. */
void migrc_print(struct json *json);

#endif
