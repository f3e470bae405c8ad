/* SPDX-License-Identifier: GPL-2.0 */
/* All antagonists; each has a file of its own, or shares one with its mirror image. */
#ifndef STRESSORS_H
#define STRESSORS_H

#include "../worker.h"

extern const struct antagonist read_antagonist;
extern const struct antagonist write_antagonist;
extern const struct antagonist fork_antagonist;
extern const struct antagonist mlock_antagonist;
extern const struct antagonist mprotect_antagonist;
extern const struct antagonist ksm_antagonist;
extern const struct antagonist swap_antagonist;
extern const struct antagonist split_antagonist;
extern const struct antagonist readfile_antagonist;
extern const struct antagonist writefile_antagonist;
extern const struct antagonist readdisk_antagonist;
extern const struct antagonist writedisk_antagonist;
extern const struct antagonist vmsplice_antagonist;
extern const struct antagonist odirect_antagonist;
extern const struct antagonist uring_antagonist;

/* Played only with --flip. */
extern const struct antagonist flip_antagonist;

#endif
