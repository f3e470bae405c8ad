/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LINUX_FERRY_PROMOTE_H
#define _LINUX_FERRY_PROMOTE_H

#include <linux/ferry.h>

#if defined(CONFIG_FERRY) && defined(CONFIG_NUMA_BALANCING)

bool __ferry_promote(struct folio *folio, int node);
void ferry_promote_drain(void);

#if IS_ENABLED(CONFIG_KUNIT)
extern unsigned long ferry_promote_delay;
void ferry_take_alike(struct list_head *from, struct list_head *to);
#endif

/**
 * ferry_promote() - let a misplaced folio migrate later, together with others
 * @folio:	the folio, isolated by migrate_misplaced_folio_prepare()
 * @node:	the node that it belongs on
 *
 * Context: process context, no lock held. Does not sleep.
 * Return: true if the folio is taken: the caller maps it where it is. false if
 * the caller must migrate it.
 */
static inline bool ferry_promote(struct folio *folio, int node)
{
	return static_branch_unlikely(&ferry_long_lists) &&
	       __ferry_promote(folio, node);
}

#else

static inline void ferry_promote_drain(void) { }

static inline bool ferry_promote(struct folio *folio, int node)
{
	return false;
}

#endif /* CONFIG_FERRY && CONFIG_NUMA_BALANCING */

#endif /* _LINUX_FERRY_PROMOTE_H */
