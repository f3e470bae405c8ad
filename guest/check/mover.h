/* SPDX-License-Identifier: GPL-2.0 */
#ifndef CHECK_MOVER_H
#define CHECK_MOVER_H

#include "actor.h"

extern const struct antagonist mover;

#endif
