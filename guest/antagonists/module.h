/* SPDX-License-Identifier: GPL-2.0 */
/* Loading and unloading a kernel module by system call. */
#ifndef ANTAGONISTS_MODULE_H
#define ANTAGONISTS_MODULE_H

#include <stdbool.h>

/* False and errno if refused. */
bool module_load(const char *path);
bool module_unload(const char *path);

#endif
