/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ASM_GENERIC_MEMCPY_STREAMING_H
#define _ASM_GENERIC_MEMCPY_STREAMING_H

/* No store that bypasses the cache: memcpy_streaming() is memcpy(). */

#endif /* _ASM_GENERIC_MEMCPY_STREAMING_H */
