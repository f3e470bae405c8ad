/* SPDX-License-Identifier: GPL-2.0 */
#ifndef STALE_TLB_OPTIONS_H
#define STALE_TLB_OPTIONS_H

#include "stale_tlb.h"

void options_parse(struct options *options, int argc, char **argv);

#endif
