/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Markers around the code that `ferry profile` counts: instructions that do nothing and that QEMU's plugin
 * (src/ferry/profile/record_blocks.c) recognises. There are none on other architectures than x86-64.
 */
#ifndef GUEST_PROFILE_H
#define GUEST_PROFILE_H

#ifdef __x86_64__
/* nopl 0x46650001(%rax), and the same with 0x46650000 */
#define PROFILE_BEGIN() __asm__ volatile(".byte 0x0f, 0x1f, 0x80; .long 0x46650001" ::: "memory")
#define PROFILE_END() __asm__ volatile(".byte 0x0f, 0x1f, 0x80; .long 0x46650000" ::: "memory")
#else
#define PROFILE_BEGIN() do { } while (0)
#define PROFILE_END() do { } while (0)
#endif

#endif
