/* SPDX-License-Identifier: GPL-2.0 */
/* Asking the kernel for folios of one size; what was set before comes back when the program exits. */
#ifndef GUEST_THP_H
#define GUEST_THP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>

#define THP_DIR "/sys/kernel/mm/transparent_hugepage"
#define THP_SPLIT_FILE "/sys/kernel/debug/split_huge_pages"

/* Newer than the C library's headers. */
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

/* Alignment at which memory can hold a folio of any size. */
#define THP_ALIGN ((size_t)2 << 20)

/* Memory under MADV_HUGEPAGE may get folios of this size. False and errno if the kernel cannot. */
bool thp_allow(size_t folio_bytes, bool shmem);

/* The same, and no other size: the kernel would take the largest allowed. */
bool thp_allow_only(size_t folio_bytes, bool shmem);

#endif
