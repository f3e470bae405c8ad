/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LINUX_MIGRC_CHECK_H
#define _LINUX_MIGRC_CHECK_H

/*
 * Hooks by which the page table helpers, the page allocator, the page cache and
 * the handling of failed memory inform the checker, see mm/migrc/check.c. They
 * are apart from linux/migrc.h because headers below linux/mm.h call them.
 */

#include <linux/mm_types.h>

#ifdef CONFIG_MIGRC_DEBUG
s64 migrc_check_begin(void);
void migrc_check_drained(s64 start);
void migrc_check_assert_flushed(struct mm_struct *mm, unsigned int cause);
void migrc_check_set(struct mm_struct *mm, unsigned long addr, pte_t pte,
		     unsigned int nr);
void migrc_check_range_flushed(struct mm_struct *mm, unsigned long start,
			       unsigned long end);
void migrc_check_batched(struct mm_struct *mm, unsigned long start,
			 unsigned long end);
void migrc_check_batch_flushed(void);
void migrc_check_free(const struct page *page, unsigned int order);
void migrc_check_written(const struct folio *folio);
void migrc_check_removed(const struct folio *folio);
void migrc_check_failed(unsigned long pfn);
#else
static inline s64 migrc_check_begin(void) { return 0; }
static inline void migrc_check_drained(s64 start) { }
static inline void migrc_check_assert_flushed(struct mm_struct *mm,
					      unsigned int cause) { }
static inline void migrc_check_set(struct mm_struct *mm, unsigned long addr,
				   pte_t pte, unsigned int nr) { }
static inline void migrc_check_range_flushed(struct mm_struct *mm,
					     unsigned long start,
					     unsigned long end) { }
static inline void migrc_check_batched(struct mm_struct *mm,
				       unsigned long start,
				       unsigned long end) { }
static inline void migrc_check_batch_flushed(void) { }
static inline void migrc_check_free(const struct page *page,
				    unsigned int order) { }
static inline void migrc_check_written(const struct folio *folio) { }
static inline void migrc_check_removed(const struct folio *folio) { }
static inline void migrc_check_failed(unsigned long pfn) { }
#endif /* CONFIG_MIGRC_DEBUG */

#endif /* _LINUX_MIGRC_CHECK_H */
