// SPDX-License-Identifier: GPL-2.0
#include "options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "parse.h"
#include "quit.h"
#include "stamp.h"

static const char usage[] =
	"usage: movebench [OPTION]...\n"
	"Move memory from one node to another and back with move_pages(2); time it; print JSON lines.\n"
	"  --folio 4k|64k|2m   size of a folio (4k)\n"
	"  --bytes N[k|m|g]    how much to move (64m)\n"
	"  --samples N         timed rounds (10)\n"
	"  --warmup N          rounds before them (2)\n"
	"  --from NODE         where the memory starts (0)\n"
	"  --to NODE           where it goes (1)\n"
	"  --kind KIND         anon, shmem, file or swapcache (anon)\n"
	"  --file PATH         the file for --kind file; created, overwritten and removed\n"
	"  --single            one folio a call instead of all in one call\n"
	"  --read-only         map the memory read-only once it is filled (anon of 4k, or 2m)\n"
	"  --hogs N            threads that burn CPU meanwhile, one pinned per CPU (0)\n"
	"  --config LABEL[:FILE=VALUE[,FILE=VALUE]...]\n"
	"                      settings under /sys/kernel/mm/migration, applied before each sample;\n"
	"                      repeat it to compare: every round measures each in turn (stock:)\n"
	"Exit status: 0 done, 1 failure, 2 usage, 4 the kernel or machine lacks something.\n";

static const struct option long_options[] = {
	{ "folio", required_argument, NULL, 'f' },	{ "bytes", required_argument, NULL, 'b' },
	{ "samples", required_argument, NULL, 's' },	{ "warmup", required_argument, NULL, 'w' },
	{ "from", required_argument, NULL, 'F' },	{ "to", required_argument, NULL, 'T' },
	{ "kind", required_argument, NULL, 'k' },	{ "file", required_argument, NULL, 'p' },
	{ "single", no_argument, NULL, '1' },		{ "read-only", no_argument, NULL, 'r' },
	{ "hogs", required_argument, NULL, 'g' },
	{ "config", required_argument, NULL, 'c' },	{ "help", no_argument, NULL, 'h' },
	{ 0 }
};

static void parse_kind(struct options *options, const char *text)
{
	static const char *const names[] = { "anon", "shmem", "file", "swapcache" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (!strcmp(text, names[i])) {
			options->kind = i;
			options->kind_name = names[i];
			return;
		}
	}
	quit(EXIT_USAGE, "--kind: '%s' is none of anon, shmem, file, swapcache", text);
}

static void add_config(struct options *options, const char *text)
{
	if (options->config_count == MOST_CONFIGS)
		quit(EXIT_USAGE, "--config: more than %d", MOST_CONFIGS);
	config_parse(&options->configs[options->config_count], text);
	for (size_t i = 0; i < options->config_count; i++)
		if (!strcmp(options->configs[i].label, options->configs[options->config_count].label))
			quit(EXIT_USAGE, "--config: label '%s' is used twice", options->configs[i].label);
	options->config_count++;
}

static void show_usage(void)
{
	fputs(usage, stdout);
	exit(EXIT_PASSED);
}

static void parse_option(struct options *options, int option, const char *value)
{
	switch (option) {
	case 'f': options->folio_bytes = parse_bytes("--folio", value); break;
	case 'b': options->bytes = parse_bytes("--bytes", value); break;
	case 's': options->samples = parse_number("--samples", value, 1, 100000); break;
	case 'w': options->warmup = parse_number("--warmup", value, 0, 100000); break;
	case 'F': options->from = parse_number("--from", value, 0, 1023); break;
	case 'T': options->to = parse_number("--to", value, 0, 1023); break;
	case 'k': parse_kind(options, value); break;
	case 'p': options->file = value; break;
	case '1': options->single = true; break;
	case 'r': options->read_only = true; break;
	case 'g': options->hogs = parse_number("--hogs", value, 0, 4096); break;
	case 'c': add_config(options, value); break;
	case 'h': show_usage(); break;
	default: quit(EXIT_USAGE, "an unknown option, or one without its value; see movebench --help");
	}
}

static void check_together(const struct options *options)
{
	size_t folio = options->folio_bytes;

	if (folio < PAGE_BYTES || folio > ((size_t)2 << 20) || folio & (folio - 1))
		quit(EXIT_USAGE, "--folio: %zu bytes is no power of two from 4k to 2m", folio);
	if (options->bytes % folio)
		quit(EXIT_USAGE, "--bytes: %zu is no multiple of the folio's %zu", options->bytes, folio);
	if (options->bytes / PAGE_BYTES > STAMP_PAGES)
		quit(EXIT_USAGE, "--bytes: more than %u pages", STAMP_PAGES);
	if (options->from == options->to)
		quit(EXIT_USAGE, "--from and --to are both %d: nothing would move", options->to);
	if ((options->kind == KIND_FILE) != !!options->file)
		quit(EXIT_USAGE, "--file PATH and --kind file belong together");
	if (options->read_only && (options->kind != KIND_ANON || memory_must_renew(options)))
		quit(EXIT_USAGE, "--read-only: for anonymous memory in folios of 4k or 2m only");
	if (options->kind == KIND_SWAPCACHE && folio != PAGE_BYTES)
		quit(EXIT_USAGE, "--kind swapcache: memory comes back from swap in 4k folios only");
}

void options_parse(struct options *options, int argc, char **argv)
{
	int option;

	*options = (struct options){
		.folio_bytes = PAGE_BYTES, .bytes = (size_t)64 << 20, .samples = 10, .warmup = 2,
		.from = 0, .to = 1, .kind = KIND_ANON, .kind_name = "anon",
	};
	opterr = 0;	/* one error is enough */
	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
		parse_option(options, option, optarg);
	if (optind < argc)
		quit(EXIT_USAGE, "'%s' is no option; see movebench --help", argv[optind]);
	if (!options->config_count)
		add_config(options, "stock:");
	check_together(options);
}
