/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MM_MIGRC_CHECK_H
#define _MM_MIGRC_CHECK_H

#ifdef CONFIG_MIGRC_DEBUG

struct migrc_record;

extern atomic_t migrc_violations;

void migrc_check_complain(const char *what, const struct migrc_record *record);
void migrc_check_init(struct mm_struct *mm);
void migrc_check_exit(struct mm_struct *mm);
void migrc_check_deferred(struct mm_struct *mm, unsigned long addr, pte_t pte);
bool migrc_check_pending(void);
void migrc_check_flushed(struct mm_struct *mm, s64 start);
void migrc_check_waits(bool waits);
void migrc_check_speak(void);

#else

static inline void migrc_check_init(struct mm_struct *mm) { }
static inline void migrc_check_exit(struct mm_struct *mm) { }
static inline void migrc_check_deferred(struct mm_struct *mm, unsigned long addr,
					pte_t pte) { }
static inline bool migrc_check_pending(void) { return true; }
static inline void migrc_check_flushed(struct mm_struct *mm, s64 start) { }
static inline void migrc_check_waits(bool waits) { }

#endif /* CONFIG_MIGRC_DEBUG */
#endif /* _MM_MIGRC_CHECK_H */
