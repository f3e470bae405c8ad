/* SPDX-License-Identifier: GPL-2.0 */
/* All stressors: one a file, but for pairs that differ in direction only. */
#ifndef STRESSORS_H
#define STRESSORS_H

#include "../worker.h"

extern const struct stressor read_stressor;
extern const struct stressor write_stressor;
extern const struct stressor fork_stressor;
extern const struct stressor mlock_stressor;
extern const struct stressor mprotect_stressor;
extern const struct stressor ksm_stressor;
extern const struct stressor swap_stressor;
extern const struct stressor split_stressor;
extern const struct stressor readfile_stressor;
extern const struct stressor writefile_stressor;
extern const struct stressor readdisk_stressor;
extern const struct stressor writedisk_stressor;
extern const struct stressor vmsplice_stressor;
extern const struct stressor odirect_stressor;
extern const struct stressor uring_stressor;
extern const struct stressor uffd_stressor;
extern const struct stressor numahint_stressor;

/* Run only with --switch. */
extern const struct stressor switch_stressor;

/* Run only with --control. */
extern const struct stressor control_stressor;
extern const struct stressor lru_gen_stressor;

#endif
