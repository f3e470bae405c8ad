// SPDX-License-Identifier: GPL-2.0
#include "options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parse.h"
#include "pinned.h"
#include "quit.h"
#include "stamp.h"
#include "workload.h"

static const char usage[] =
	"usage: tlbbench --workload NAME [OPTION]...\n"
	"Move memory between two nodes while a thread on each CPU reads it; count the TLB flushes that\n"
	"this costs; print JSON lines. One run is one sample.\n"
	"  --workload NAME     move_pages, single (one page a call), compaction, hinting\n"
	"  --kind KIND         file, anon or both halves (both); hinting has anonymous memory only\n"
	"  --bytes N[k|m|g]    memory that is read, a multiple of 2m (32m; single 8m, hinting 128m,\n"
	"                      compaction 3/4 of what is free on --from)\n"
	"  --moves N           page moves to make (16384; single 512, hinting 32768);\n"
	"                      compaction makes as many as it makes\n"
	"  --from NODE         where the memory starts; hinting: the fast one (0)\n"
	"  --to NODE           where it goes; hinting: the slow one (1)\n"
	"  --file PATH         the file; created, overwritten and removed (/dev/shm/tlbbench)\n"
	"  --readers N         threads that read, one pinned per CPU (as many as there are CPUs)\n"
	"  --settle-ms N       how long to wait for flushes that were deferred (3000)\n"
	"  --limit-s N         hinting: how long to wait for the moves (60)\n"
	"  --migrc 0|1         whether the kernel may defer flushes (as it is)\n"
	"  --max-bytes N[k|m|g] of its quarantine (as it is)\n"
	"  --max-age-ms N      of a page in it (as it is)\n"
	"  --round N           a number to print with the sample (0)\n"
	"Exit status: 0 done, 1 failure, 2 usage, 4 the kernel or machine lacks something.\n";

static const struct option long_options[] = {
	{ "workload", required_argument, NULL, 'w' },	{ "kind", required_argument, NULL, 'k' },
	{ "bytes", required_argument, NULL, 'b' },	{ "moves", required_argument, NULL, 'm' },
	{ "from", required_argument, NULL, 'F' },	{ "to", required_argument, NULL, 'T' },
	{ "file", required_argument, NULL, 'p' },	{ "readers", required_argument, NULL, 'r' },
	{ "settle-ms", required_argument, NULL, 's' },	{ "limit-s", required_argument, NULL, 'l' },
	{ "migrc", required_argument, NULL, 'e' },	{ "max-bytes", required_argument, NULL, 'q' },
	{ "max-age-ms", required_argument, NULL, 'a' },
	{ "round", required_argument, NULL, 'n' },	{ "help", no_argument, NULL, 'h' },
	{ 0 }
};

static void parse_kind(struct options *options, const char *text)
{
	static const char *const names[] = { "file", "anon", "both" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (!strcmp(text, names[i])) {
			options->kind = i;
			options->kind_name = names[i];
			return;
		}
	}
	quit(EXIT_USAGE, "--kind: '%s' is none of file, anon, both", text);
}

static void parse_workload(struct options *options, const char *text)
{
	options->workload = workload_find(text);
	if (!options->workload)
		quit(EXIT_USAGE, "--workload: '%s' is none of move_pages, single, compaction, hinting", text);
}

static void show_usage(void)
{
	fputs(usage, stdout);
	exit(EXIT_PASSED);
}

static void parse_option(struct options *options, int option, const char *value)
{
	switch (option) {
	case 'w': parse_workload(options, value); break;
	case 'k': parse_kind(options, value); break;
	case 'b': options->bytes = parse_bytes("--bytes", value); break;
	case 'm': options->moves = parse_number("--moves", value, 1, 1u << 30); break;
	case 'F': options->from = parse_number("--from", value, 0, 1023); break;
	case 'T': options->to = parse_number("--to", value, 0, 1023); break;
	case 'p': options->file = value; break;
	case 'r': options->readers = parse_number("--readers", value, 1, 4096); break;
	case 's': options->settle_ms = parse_number("--settle-ms", value, 0, 600000); break;
	case 'l': options->limit_s = parse_number("--limit-s", value, 1, 36000); break;
	case 'e': options->migrc.enabled = parse_number("--migrc", value, 0, 1); break;
	case 'q': options->migrc.max_bytes = parse_bytes("--max-bytes", value); break;
	case 'a': options->migrc.max_age_ms = parse_number("--max-age-ms", value, 1, 60000); break;
	case 'n': options->round = parse_number("--round", value, 0, 1000000); break;
	case 'h': show_usage(); break;
	default: quit(EXIT_USAGE, "an unknown option, or one without its value; see tlbbench --help");
	}
}

static void fill_in(struct options *options)
{
	const struct workload *workload = options->workload;

	if (!options->bytes)
		options->bytes = workload->bytes ? workload->bytes : compaction_bytes(options->from);
	if (!options->bytes)
		quit(EXIT_MISSING, "--from: node %d has nothing free to fill", options->from);
	if (workload->tiered) {
		options->kind = TARGET_ANON;
		options->kind_name = "anon";
	}
	if (!workload->moves && options->moves)
		quit(EXIT_USAGE, "--moves: %s moves as many as it does", workload->name);
	if (!options->moves)
		options->moves = workload->moves;
	if (!options->readers)
		options->readers = cpus_usable();
}

static void check_together(const struct options *options)
{
	if (options->from == options->to)
		quit(EXIT_USAGE, "--from and --to are both %d: nothing would move", options->to);
	if (options->bytes % TARGET_ALIGN)
		quit(EXIT_USAGE, "--bytes: %zu is no multiple of 2m", options->bytes);
	if (options->bytes / PAGE_BYTES > STAMP_PAGES)
		quit(EXIT_USAGE, "--bytes: more than %u pages", STAMP_PAGES);
}

void options_parse(struct options *options, int argc, char **argv)
{
	int option;

	*options = (struct options){
		.kind = TARGET_BOTH, .kind_name = "both", .file = "/dev/shm/tlbbench", .to = 1,
		.settle_ms = 3000, .limit_s = 60, .migrc.enabled = -1,
	};
	opterr = 0;	/* one error is enough */
	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
		parse_option(options, option, optarg);
	if (optind < argc)
		quit(EXIT_USAGE, "'%s' is no option; see tlbbench --help", argv[optind]);
	if (!options->workload)
		quit(EXIT_USAGE, "--workload is missing; see tlbbench --help");
	fill_in(options);
	check_together(options);
}
