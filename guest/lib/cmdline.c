// SPDX-License-Identifier: GPL-2.0
#include "cmdline.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util.h"

#define MAX_OPTIONS 32
#define HELP_COLUMN 26

/* strtoull() alone accepts signs and leading blanks, which are mistakes here. */
static uint64_t leading_number(const char *name, const char *text, char **end)
{
	uint64_t value;

	if (!isdigit((unsigned char)text[0]))
		die(EXIT_USAGE, "--%s: '%s' is not a number", name, text);
	errno = 0;
	value = strtoull(text, end, 10);
	if (errno)
		die(EXIT_USAGE, "--%s: '%s' is too large", name, text);
	return value;
}

static void set_number(const struct cmdline_option *option, const char *text)
{
	char *end;
	uint64_t value = leading_number(option->name, text, &end);

	if (*end)
		die(EXIT_USAGE, "--%s: '%s' is not a number", option->name, text);
	if (value < option->min || value > option->max)
		die(EXIT_USAGE, "--%s: %s is outside %" PRIu64 "..%" PRIu64, option->name, text, option->min,
		    option->max);
	if (option->target_bytes == sizeof(uint64_t))
		*(uint64_t *)option->target = value;
	else
		*(uint32_t *)option->target = value;
}

static void set_size(const struct cmdline_option *option, const char *text)
{
	static const char suffixes[] = "kmg";
	char *end;
	uint64_t value = leading_number(option->name, text, &end);
	const char *suffix = *end ? strchr(suffixes, tolower((unsigned char)*end)) : NULL;
	unsigned int shift = suffix ? 10 * (suffix - suffixes + 1) : 0;

	if (*end && (!suffix || end[1]))
		die(EXIT_USAGE, "--%s: '%s' is not a size: a number with k, m or g", option->name, text);
	if (!value)
		die(EXIT_USAGE, "--%s: the size is 0", option->name);
	if (value > (uint64_t)INT64_MAX >> shift)
		die(EXIT_USAGE, "--%s: '%s' is too large", option->name, text);
	*(size_t *)option->target = value << shift;
}

static void set_choice(const struct cmdline_option *option, const char *text)
{
	char names[256] = "";

	for (unsigned int i = 0; option->choices[i]; i++) {
		if (!strcmp(text, option->choices[i])) {
			*(unsigned int *)option->target = i;
			return;
		}
		snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s", i ? ", " : "",
			 option->choices[i]);
	}
	die(EXIT_USAGE, "--%s: '%s' is none of %s", option->name, text, names);
}

static void require_known(const struct cmdline_option *option, const char *list)
{
	char *copy = strdup(list), *rest = copy, *name;

	while (copy && (name = strsep(&rest, ",")))
		if (!option->known(name))
			die(EXIT_USAGE, "--%s: there is no '%s'; see %s --help", option->name, name,
			    program_invocation_short_name);
	free(copy);
}

static void apply(const struct cmdline_option *option, const char *value)
{
	switch (option->kind) {
	case OPTION_FLAG:
		*(bool *)option->target = true;
		break;
	case OPTION_NUMBER:
		set_number(option, value);
		break;
	case OPTION_SIZE:
		set_size(option, value);
		break;
	case OPTION_CHOICE:
		set_choice(option, value);
		break;
	case OPTION_LIST:
		require_known(option, value);
		*(const char **)option->target = value;
		break;
	case OPTION_TEXT:
		*(const char **)option->target = value;
		break;
	case OPTION_CALL:
		option->add(option->target, value);
	}
}

static _Noreturn void show_help(const char *about, const struct cmdline_option *table)
{
	printf("usage: %s\n", about);
	for (const struct cmdline_option *option = table; option->name; option++) {
		const char *line = option->help;
		int used;

		if (!line)
			continue;
		used = printf("  --%s%s%s", option->name, option->value ? " " : "", option->value ? option->value : "");
		if (used >= HELP_COLUMN) {
			printf("\n");
			used = 0;
		}
		for (; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL, used = 0)
			printf("%*s%.*s\n", HELP_COLUMN - used, "", (int)strcspn(line, "\n"), line);
	}
	printf("Exit status: 0 done or passed, 1 failure, 2 usage, 4 the kernel or machine lacks a feature.\n");
	exit(EXIT_PASSED);
}

static void parse_options(const char *about, const struct cmdline_option *table, int argc, char **argv)
{
	struct option options[MAX_OPTIONS] = { { "help", no_argument, NULL, 'h' } };
	const char *program = program_invocation_short_name;
	int got, index;

	for (size_t i = 0; table[i].name; i++) {
		if (i + 2 == MAX_OPTIONS)
			die(EXIT_FAILED, "the option table has more than %d entries", MAX_OPTIONS - 2);
		options[i + 1] = (struct option){ table[i].name, table[i].value ? required_argument : no_argument,
						  NULL, 'o' };
	}
	while ((got = getopt_long(argc, argv, "+:", options, &index)) != -1) {
		if (got == 'h')
			show_help(about, table);
		if (got != 'o')
			die(EXIT_USAGE, "'%s' %s; see %s --help", argv[optind - 1],
			    got == ':' ? "lacks its value" : "is no option, or takes no value", program);
		apply(&table[index - 1], optarg);
	}
}

void cmdline_parse(const char *about, const struct cmdline_option *table, int argc, char **argv)
{
	parse_options(about, table, argc, argv);
	if (optind < argc)
		die(EXIT_USAGE, "'%s' is no option; see %s --help", argv[optind], program_invocation_short_name);
}

char **cmdline_parse_command(const char *about, const struct cmdline_option *table, int argc, char **argv)
{
	parse_options(about, table, argc, argv);
	if (optind == argc)
		die(EXIT_USAGE, "the command is missing; see %s --help", program_invocation_short_name);
	return argv + optind;
}

bool cmdline_in_list(const char *list, const char *name)
{
	size_t length = strlen(name);

	for (;; list++) {
		if (!strncmp(list, name, length) && (!list[length] || list[length] == ','))
			return true;
		list = strchr(list, ',');
		if (!list)
			return false;
	}
}
