/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The command line of a program, described by one table of long options. If an option is unknown, lacks its value, or
 * has a value outside of its bounds, the program ends with EXIT_USAGE and one line that names the option.
 */
#ifndef GUEST_CMDLINE_H
#define GUEST_CMDLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_kind {
	OPTION_FLAG = 1,	/* no value; sets a bool */
	OPTION_NUMBER,		/* a decimal number from min to max, for an integer of 4 or 8 bytes */
	OPTION_SIZE,		/* bytes, for a size_t: a decimal number with an optional suffix k, m or g; never 0 */
	OPTION_CHOICE,		/* one of the names in `choices`, for an enum: its index */
	OPTION_LIST,		/* comma-separated names, each accepted by known(), for a const char * */
	OPTION_TEXT,		/* any text, for a const char * */
	OPTION_CALL,		/* may be repeated: add() gets every value */
};

struct cmdline_option {
	const char *name;		/* without the dashes */
	const char *value;		/* its name in the help; NULL: the option has none */
	const char *help;		/* lines separated by \n; NULL: not in the help */
	enum option_kind kind;
	void *target;
	size_t target_bytes;
	uint64_t min, max;
	const char *const *choices;	/* ends with NULL */
	bool (*known)(const char *name);
	void (*add)(void *target, const char *value);
};

/* The entries of a table, which ends with { 0 }. */
#define OPT_FLAG(long_name, where, text) \
	{ .kind = OPTION_FLAG, .name = long_name, .target = (where), .help = text }
#define OPT_NUMBER(long_name, what, where, least, most, text) \
	{ .kind = OPTION_NUMBER, .name = long_name, .value = what, .target = (where), \
	  .target_bytes = sizeof(*(where)), .min = least, .max = most, .help = text }
#define OPT_NODE(long_name, where, text) OPT_NUMBER(long_name, "NODE", where, 0, 1023, text)
#define OPT_SIZE(long_name, where, text) \
	{ .kind = OPTION_SIZE, .name = long_name, .value = "N[k|m|g]", .target = (where), .help = text }
#define OPT_CHOICE(long_name, what, where, names, text) \
	{ .kind = OPTION_CHOICE, .name = long_name, .value = what, .target = (where), .choices = names, .help = text }
#define OPT_LIST(long_name, what, where, is_known, text) \
	{ .kind = OPTION_LIST, .name = long_name, .value = what, .target = (where), .known = is_known, .help = text }
#define OPT_TEXT(long_name, what, where, text) \
	{ .kind = OPTION_TEXT, .name = long_name, .value = what, .target = (where), .help = text }
#define OPT_CALL(long_name, what, where, call, text) \
	{ .kind = OPTION_CALL, .name = long_name, .value = what, .target = (where), .add = call, .help = text }

/*
 * Parse the command line into the targets of the table; a target keeps its value if its option is not given. `about` is
 * the usage line and the purpose of the program. --help prints it with the help of all options, and exits.
 */
void cmdline_parse(const char *about, const struct cmdline_option *table, int argc, char **argv);

/* The same for "[OPTION]... [--] COMMAND...": returns the first word of the command; its end is NULL, as argv's is. */
char **cmdline_parse_command(const char *about, const struct cmdline_option *table, int argc, char **argv);

/* Whether a name is in a comma-separated list. */
bool cmdline_in_list(const char *list, const char *name);

#endif
