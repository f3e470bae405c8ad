/* SPDX-License-Identifier: GPL-2.0 */
/* Somewhere to swap to while the program runs. */
#ifndef GUEST_SWAPDEV_H
#define GUEST_SWAPDEV_H

#include <stdbool.h>
#include <stddef.h>

#include "loopdev.h"

struct swapdev {
	struct loopdev loop;
};

/*
 * NULL, or what is missing. A loop device and not zram: the kernel keeps no swap cache for zram,
 * and the swap cache is what migration has to deal with.
 */
const char *swapdev_open(struct swapdev *swap, size_t bytes);
/* False and errno if the kernel cannot bring everything back; then the swap space stays in use. */
bool swapdev_close(struct swapdev *swap);

#endif
