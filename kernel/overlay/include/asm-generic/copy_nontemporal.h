/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ASM_GENERIC_COPY_NONTEMPORAL_H
#define _ASM_GENERIC_COPY_NONTEMPORAL_H

/* No non-temporal store: copy_nontemporal() is memcpy(). */

#endif /* _ASM_GENERIC_COPY_NONTEMPORAL_H */
