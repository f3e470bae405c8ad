/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MM_MIGRC_MUTATE_H
#define _MM_MIGRC_MUTATE_H

/*
 * Fault injection: a test can leave out single steps of migrc, to see that their absence is
 * noticed. Those that leave out a flush have the number of its cause.
 */
enum migrc_fault {
	MIGRC_FAIL_FILE_RECHECK = MIGRC_NR_CAUSES, /* an open file's folio is deferred */
	MIGRC_FAIL_PENDING,		/* a PTE is deferred though a flush is pending */
	MIGRC_FAIL_FORK,		/* a PTE is deferred though fork has not flushed it */
	MIGRC_FAIL_QUARANTINE,		/* sources are freed at once */
	MIGRC_FAIL_DRAIN,		/* a drain frees without a flush */
	MIGRC_FAIL_GENERATION,		/* an address space never owes a flush */
	MIGRC_NR_FAULTS,
};

#ifdef CONFIG_MIGRC_DEBUG

extern unsigned long migrc_faults;

static inline bool migrc_should_fail(unsigned int fault)
{
	return READ_ONCE(migrc_faults) & BIT(fault);
}

#else

static inline bool migrc_should_fail(unsigned int fault)
{
	return false;
}

#endif /* CONFIG_MIGRC_DEBUG */
#endif /* _MM_MIGRC_MUTATE_H */
