/* SPDX-License-Identifier: GPL-2.0 */
#ifndef LITMUS_OPTIONS_H
#define LITMUS_OPTIONS_H

#include "litmus.h"

void options_parse(struct options *options, int argc, char **argv);

#endif
