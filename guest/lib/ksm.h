/* SPDX-License-Identifier: GPL-2.0 */
/* The kernel's merging of equal pages. */
#ifndef GUEST_KSM_H
#define GUEST_KSM_H

#include <stdbool.h>

#define KSM_DIR "/sys/kernel/mm/ksm/"

/* Until the program exits: look at much and often, and merge or only be ready to. False and errno if refused. */
bool ksm_hurry(bool merge);

#endif
