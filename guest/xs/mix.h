/* SPDX-License-Identifier: GPL-2.0 */
/* Numbers that look random and are the same everywhere: splitmix64. */
#ifndef XS_MIX_H
#define XS_MIX_H

#include <stdint.h>

static inline uint64_t mix(uint64_t value)
{
	value += UINT64_C(0x9e3779b97f4a7c15);
	value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
	return value ^ value >> 31;
}

/* In [0, 1). */
static inline double mix_share(uint64_t value)
{
	return (mix(value) >> 11) * 0x1p-53;
}

#endif
