// SPDX-License-Identifier: GPL-2.0
#include "options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "parse.h"
#include "quit.h"
#include "stamp.h"

static const char usage[] =
	"usage: integrity [OPTION]...\n"
	"Move stamped memory between two nodes while others get in the way; look for wrong bytes.\n"
	"  --seconds N       the least time under load (10)\n"
	"  --bytes N[k|m|g]  of all memory areas together, at least 16m (64m)\n"
	"  --threads N       readers, and as many writers (2)\n"
	"  --movers N        threads that call move_pages(2) (2)\n"
	"  --from NODE --to NODE  the two nodes (0, 1)\n"
	"  --only A,B,...    only these antagonists: read write fork mlock mprotect ksm swap split\n"
	"                    readfile writefile readdisk writedisk vmsplice odirect uring\n"
	"  --file DIR        directory on a disk file system, for readdisk, writedisk, odirect\n"
	"  --seed N          of all choices; the interleaving stays the scheduler's (1)\n"
	"  --flip            change the migrator and its settings meanwhile\n"
	"  --module PATH     and load, select, deselect and unload this module\n"
	"  --flips N         go on until that many flips (or module cycles) are done\n"
	"  --audit-by NAME   the migrator to select before what is left is looked at\n"
	"  --leak-kb N       how much less memory may be free at the end (8192)\n"
	"  --ktap            results as KTAP; the JSON lines become its comments\n"
	"Exit status: 0 passed, 1 wrong byte or other failure, 2 usage, 4 nothing could be tested.\n";

static const struct option long_options[] = {
	{ "seconds", required_argument, NULL, 's' },	{ "bytes", required_argument, NULL, 'b' },
	{ "threads", required_argument, NULL, 't' },	{ "movers", required_argument, NULL, 'm' },
	{ "from", required_argument, NULL, 'F' },	{ "to", required_argument, NULL, 'T' },
	{ "only", required_argument, NULL, 'o' },	{ "file", required_argument, NULL, 'p' },
	{ "audit-by", required_argument, NULL, 'a' },
	{ "seed", required_argument, NULL, 'r' },	{ "flip", no_argument, NULL, 'x' },
	{ "module", required_argument, NULL, 'M' },	{ "flips", required_argument, NULL, 'n' },
	{ "leak-kb", required_argument, NULL, 'l' },	{ "ktap", no_argument, NULL, 'k' },
	{ "help", no_argument, NULL, 'h' },		{ 0 }
};

static void show_usage(void)
{
	fputs(usage, stdout);
	exit(EXIT_PASSED);
}

static void parse_option(struct options *options, int option, const char *value)
{
	switch (option) {
	case 's': options->seconds = parse_number("--seconds", value, 1, 1000000); break;
	case 'b': options->bytes = parse_bytes("--bytes", value); break;
	case 't': options->threads = parse_number("--threads", value, 1, 64); break;
	case 'm': options->movers = parse_number("--movers", value, 1, 64); break;
	case 'F': options->nodes[0] = parse_number("--from", value, 0, 1023); break;
	case 'T': options->nodes[1] = parse_number("--to", value, 0, 1023); break;
	case 'o': options->only = value; break;
	case 'p': options->file = value; break;
	case 'r': options->seed = parse_number("--seed", value, 0, UINT64_MAX); break;
	case 'a': options->audit_by = value; break;
	case 'x': options->flip = true; break;
	case 'M': options->module = value; break;
	case 'n': options->flips = parse_number("--flips", value, 1, 10000000); break;
	case 'l': options->leak_kb = parse_number("--leak-kb", value, 0, UINT32_MAX); break;
	case 'k': options->ktap = true; break;
	case 'h': show_usage(); break;
	default: quit(EXIT_USAGE, "an unknown option, or one without its value; see integrity --help");
	}
}

static void check_together(const struct options *options)
{
	if (options->bytes < (size_t)16 << 20)
		quit(EXIT_USAGE, "--bytes: less than 16m leave no room for every kind of memory");
	if (options->bytes / PAGE_BYTES > STAMP_PAGES)
		quit(EXIT_USAGE, "--bytes: more than %u pages", STAMP_PAGES);
	if (options->nodes[0] == options->nodes[1])
		quit(EXIT_USAGE, "--from and --to are both %d: nothing would move", options->nodes[0]);
	if ((options->module || options->flips) && !options->flip)
		quit(EXIT_USAGE, "--module and --flips need --flip");
	if (options->module && access(options->module, R_OK))
		quit(EXIT_USAGE, "--module %s: %m", options->module);
}

void options_parse(struct options *options, int argc, char **argv)
{
	int option;

	*options = (struct options){
		.seconds = 10, .bytes = (size_t)64 << 20, .threads = 2, .movers = 2,
		.nodes = { 0, 1 }, .seed = 1, .leak_kb = 8192,
	};
	opterr = 0;	/* one error is enough */
	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
		parse_option(options, option, optarg);
	if (optind < argc)
		quit(EXIT_USAGE, "'%s' is no option; see integrity --help", argv[optind]);
	check_together(options);
}
