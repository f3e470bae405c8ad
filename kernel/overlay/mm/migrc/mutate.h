/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MM_MIGRC_MUTATE_H
#define _MM_MIGRC_MUTATE_H

/*
 * Mutations: single steps of migrc that a test can leave out, to see that their absence is
 * noticed. Those that leave out a flush have the number of its cause.
 */
enum migrc_mutation {
	MIGRC_SKIP_FILE_RECHECK = MIGRC_NR_CAUSES, /* an open file's folio is deferred */
	MIGRC_SKIP_PENDING,		/* a PTE is deferred though a flush is pending */
	MIGRC_SKIP_FORK,		/* a PTE is deferred though fork has not flushed it */
	MIGRC_SKIP_QUARANTINE,		/* sources are freed at once */
	MIGRC_SKIP_DRAIN,		/* a drain frees without a flush */
	MIGRC_SKIP_GENERATION,		/* an address space never owes a flush */
	MIGRC_NR_MUTATIONS,
};

#ifdef CONFIG_MIGRC_DEBUG

extern unsigned long migrc_mutations;

static inline bool migrc_skips(unsigned int mutation)
{
	return READ_ONCE(migrc_mutations) & BIT(mutation);
}

#else

static inline bool migrc_skips(unsigned int mutation)
{
	return false;
}

#endif /* CONFIG_MIGRC_DEBUG */
#endif /* _MM_MIGRC_MUTATE_H */
