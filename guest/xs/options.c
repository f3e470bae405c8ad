// SPDX-License-Identifier: GPL-2.0
#include "options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "parse.h"
#include "pinned.h"
#include "quit.h"

static const char usage[] =
	"usage: xslookup [OPTION]...\n"
	"Look up cross sections at random energies in a large table that is only read, while the kernel\n"
	"promotes and demotes its pages between two memory tiers; print JSON lines.\n"
	"  --bytes N[k|m|g]    size of the table (256m)\n"
	"  --threads N         one pinned per CPU (as many as there are CPUs)\n"
	"  --lookups N         of each thread (100000)\n"
	"  --round N           which ones: others of each number (0)\n"
	"  --top NODE          the fast memory (0)\n"
	"  --low NODE          the slow memory (1)\n"
	"  --flat              leave NUMA balancing and demotion as they are; the nodes need be no tiers\n"
	"  --migrc 0|1         whether the kernel may defer flushes (as it is)\n"
	"  --max-bytes N[k|m|g] of its quarantine (as it is)\n"
	"  --max-age-ms N      of a page in it (as it is)\n"
	"Exit status: 0 done, 1 failure, 2 usage, 4 the kernel or machine lacks something.\n";

static const struct option long_options[] = {
	{ "bytes", required_argument, NULL, 'b' },	{ "threads", required_argument, NULL, 't' },
	{ "lookups", required_argument, NULL, 'l' },	{ "round", required_argument, NULL, 'r' },
	{ "top", required_argument, NULL, 'T' },
	{ "low", required_argument, NULL, 'L' },	{ "flat", no_argument, NULL, 'f' },
	{ "migrc", required_argument, NULL, 'e' },	{ "max-bytes", required_argument, NULL, 'q' },
	{ "max-age-ms", required_argument, NULL, 'a' },
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
	case 'b': options->bytes = parse_bytes("--bytes", value); break;
	case 't': options->threads = parse_number("--threads", value, 1, 4096); break;
	case 'l': options->lookups = parse_number("--lookups", value, 1, UINT32_MAX); break;
	case 'r': options->round = parse_number("--round", value, 0, 100000); break;
	case 'T': options->top = parse_number("--top", value, 0, 1023); break;
	case 'L': options->low = parse_number("--low", value, 0, 1023); break;
	case 'f': options->tiered = false; break;
	case 'e': options->migrc.enabled = parse_number("--migrc", value, 0, 1); break;
	case 'q': options->migrc.max_bytes = parse_bytes("--max-bytes", value); break;
	case 'a': options->migrc.max_age_ms = parse_number("--max-age-ms", value, 1, 60000); break;
	case 'h': show_usage(); break;
	default: quit(EXIT_USAGE, "an unknown option, or one without its value; see xslookup --help");
	}
}

void options_parse(struct options *options, int argc, char **argv)
{
	int option;

	*options = (struct options){
		.bytes = (size_t)256 << 20, .lookups = 100000, .low = 1, .tiered = true,
		 .migrc.enabled = -1,
	};
	opterr = 0;	/* one error is enough */
	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
		parse_option(options, option, optarg);
	if (optind < argc)
		quit(EXIT_USAGE, "'%s' is no option; see xslookup --help", argv[optind]);
	if (!options->threads)
		options->threads = cpus_usable();
}
