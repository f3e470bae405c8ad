// SPDX-License-Identifier: GPL-2.0
#include "options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "parse.h"
#include "peer.h"
#include "quit.h"

static const char usage[] =
	"usage: litmus [OPTION]...\n"
	"Does a CPU whose TLB flush was deferred ever see what must not be seen any more?\n"
	"  --event NAME,...|all  the events, each a process of its own (all)\n"
	"  --except NAME,... not these\n"
	"  --list            the events, and what they are\n"
	"  --rounds N        of each event, or as many as that event can have (100)\n"
	"  --until-stale     passed once stale data was seen: for a kernel that is broken on purpose\n"
	"  --off             nothing is deferred: a control; nodes may be the same, then nothing moves\n"
	"  --machine         also events that take CPUs, memory or settings from the whole machine: in a guest only\n"
	"  --from NODE --to NODE  the two nodes (0, 1)\n"
	"  --dir DIR         where files are, on tmpfs or ext4 (/dev/shm)\n"
	"  --limit SECONDS   for one event (600)\n"
	"  --seed N          of all choices; the interleaving stays the scheduler's (1)\n"
	"  --ktap            results as KTAP; the JSON lines become its comments\n"
	"Exit status: 0 passed, 1 stale data or other failure, 2 usage, 4 nothing could be tested.\n";

static const struct option long_options[] = {
	{ "event", required_argument, NULL, 'e' },	{ "except", required_argument, NULL, 'E' },
	{ "list", no_argument, NULL, 'l' },
	{ "rounds", required_argument, NULL, 'r' },	{ "until-stale", no_argument, NULL, 'u' },
	{ "off", no_argument, NULL, 'o' },		{ "from", required_argument, NULL, 'F' },
	{ "to", required_argument, NULL, 'T' },		{ "dir", required_argument, NULL, 'd' },
	{ "limit", required_argument, NULL, 't' },	{ "seed", required_argument, NULL, 's' },
	{ "machine", no_argument, NULL, 'm' },
	{ "ktap", no_argument, NULL, 'k' },		{ "help", no_argument, NULL, 'h' },
	{ &PEER_EXEC_OPTION[2], no_argument, NULL, 'x' },	{ 0 }
};

static void show_usage(void)
{
	fputs(usage, stdout);
	exit(EXIT_PASSED);
}

static void parse_option(struct options *options, int option, const char *value)
{
	switch (option) {
	case 'e': options->events = value; break;
	case 'E': options->except = value; break;
	case 'l': options->list = true; break;
	case 'r': options->rounds = parse_number("--rounds", value, 1, 10000000); break;
	case 'u': options->until_stale = true; break;
	case 'o': options->off = true; break;
	case 'F': options->nodes[0] = parse_number("--from", value, 0, 1023); break;
	case 'T': options->nodes[1] = parse_number("--to", value, 0, 1023); break;
	case 'd': options->dir = value; break;
	case 't': options->limit_s = parse_number("--limit", value, 1, 1000000); break;
	case 's': options->seed = parse_number("--seed", value, 0, UINT32_MAX); break;
	case 'm': options->machine = true; break;
	case 'k': options->ktap = true; break;
	case 'h': show_usage(); break;
	case 'x': exit(EXIT_PASSED);
	default: quit(EXIT_USAGE, "an unknown option, or one without its value; see litmus --help");
	}
}

void options_parse(struct options *options, int argc, char **argv)
{
	int option;

	*options = (struct options){
		.events = "all", .rounds = 100, .limit_s = 600, .nodes = { 0, 1 }, .dir = "/dev/shm", .seed = 1,
	};
	opterr = 0;	/* one error is enough */
	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
		parse_option(options, option, optarg);
	if (optind < argc)
		quit(EXIT_USAGE, "'%s' is no option; see litmus --help", argv[optind]);
	if (options->nodes[0] == options->nodes[1] && !options->off)
		quit(EXIT_USAGE, "--from and --to are both %d: nothing would move", options->nodes[0]);
}
