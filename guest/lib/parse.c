// SPDX-License-Identifier: GPL-2.0
#include "parse.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "quit.h"

/* strtoull() alone accepts signs and leading blanks, which are mistakes here. */
static uint64_t leading_number(const char *option, const char *text, char **end)
{
	uint64_t value;

	if (!isdigit((unsigned char)text[0]))
		quit(EXIT_USAGE, "%s: '%s' is not a number", option, text);
	errno = 0;
	value = strtoull(text, end, 10);
	if (errno)
		quit(EXIT_USAGE, "%s: '%s' is too large", option, text);
	return value;
}

uint64_t parse_number(const char *option, const char *text, uint64_t least, uint64_t most)
{
	char *end;
	uint64_t value = leading_number(option, text, &end);

	if (*end)
		quit(EXIT_USAGE, "%s: '%s' is not a number", option, text);
	if (value < least || value > most)
		quit(EXIT_USAGE, "%s: %s is outside %" PRIu64 "..%" PRIu64, option, text, least, most);
	return value;
}

static unsigned int suffix_shift(const char *option, const char *text, const char *suffix)
{
	if (!*suffix)
		return 0;
	if (!strcasecmp(suffix, "k"))
		return 10;
	if (!strcasecmp(suffix, "m"))
		return 20;
	if (!strcasecmp(suffix, "g"))
		return 30;
	quit(EXIT_USAGE, "%s: '%s' is not a size: a number with k, m or g", option, text);
}

size_t parse_bytes(const char *option, const char *text)
{
	char *end;
	uint64_t value = leading_number(option, text, &end);
	unsigned int shift = suffix_shift(option, text, end);

	if (!value)
		quit(EXIT_USAGE, "%s: 0 bytes are nothing to work on", option);
	if (value > (uint64_t)INT64_MAX >> shift)
		quit(EXIT_USAGE, "%s: '%s' is too large", option, text);
	return value << shift;
}
