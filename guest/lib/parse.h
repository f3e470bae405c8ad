/* SPDX-License-Identifier: GPL-2.0 */
/* Command-line values; whatever is wrong ends the program with EXIT_USAGE and names the option. */
#ifndef GUEST_PARSE_H
#define GUEST_PARSE_H

#include <stddef.h>
#include <stdint.h>

/* A decimal number in [least, most]. */
uint64_t parse_number(const char *option, const char *text, uint64_t least, uint64_t most);

/* Bytes: a decimal number with an optional suffix k, m or g; never 0. */
size_t parse_bytes(const char *option, const char *text);

#endif
