// SPDX-License-Identifier: GPL-2.0
#include <getopt.h>
#include <stddef.h>

#include "../movebench/options.h"
#include "tests.h"
#include "util.h"

#define MOST_WORDS 7

static const struct {
	char *words[MOST_WORDS];
	enum exit_status status;
	const char *what;
} command_lines[] = {
	{ { "movebench", "--folio", "2m" }, EXIT_PASSED, "a folio of 2m is valid" },
	{ { "movebench", "--folio", "3m" }, EXIT_USAGE, "a folio that is no power of two is refused" },
	{ { "movebench", "--folio", "1g", "--bytes", "1g" }, EXIT_USAGE, "1g of anonymous memory is refused" },
	{ { "movebench", "--folio", "1g", "--bytes", "1g", "--kind", "hugetlb" }, EXIT_PASSED, "1g of hugetlb is valid" },
	{ { "movebench", "--folio", "2m", "--kind", "hugetlb" }, EXIT_PASSED, "so is 2m of hugetlb" },
	{ { "movebench", "--folio", "4k", "--kind", "hugetlb" }, EXIT_USAGE, "4k of hugetlb is refused" },
	{ { "movebench", "--folio", "1g", "--bytes", "2m", "--kind", "hugetlb" }, EXIT_USAGE, "a part of 1g is refused" },
	{ { "movebench", "--folio", "2m", "--kind", "hugetlb", "--read-only" }, EXIT_USAGE,
	  "read-only hugetlb memory is refused" },
}, *given;

static void parse_given(void)
{
	static struct options options;
	int count = 0;

	while (count < MOST_WORDS && given->words[count])
		count++;
	optind = 1;
	options_parse(&options, count, (char **)given->words);
}

void test_movebench_options(void)
{
	for (given = command_lines; given < command_lines + ARRAY_SIZE(command_lines); given++)
		check_true(status_of(parse_given) == (int)given->status, given->what);
}
