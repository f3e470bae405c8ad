// SPDX-License-Identifier: GPL-2.0
#include "options.h"

#include <limits.h>

#include "cmdline.h"
#include "folio.h"
#include "hugetlb.h"
#include "util.h"

static const char about[] =
	"stallbench [OPTION]...\n"
	"Move memory between two nodes all the time, and measure how long its users wait; print JSON lines.";

static const char *const memory_kinds[] = { "base", "huge", "tmpfs", "hugetlb", NULL };

void options_parse(struct options *options, int argc, char **argv)
{
	const struct cmdline_option table[] = {
		OPT_SIZE("bytes", &options->bytes, "memory that is touched and moved (128m)"),
		OPT_CHOICE("memory", "KIND", &options->memory, memory_kinds,
			   "base: single pages; huge: huge pages;\n"
			   "tmpfs: a file of huge pages, which the threads pread();\n"
			   "hugetlb: one hugetlb folio, while a thread faults other memory (base)"),
		OPT_FLAG("full", &options->full, "fill --to with single pages that have holes between them"),
		OPT_FLAG("waits", &options->waits, "time only the requests in which the thread slept"),
		OPT_NUMBER("threads", "N", &options->threads, 1, 4096, "that touch it, pinned to a CPU each (1)"),
		OPT_NUMBER("request-pages", "N", &options->request_pages, 1, 1000000,
			   "pages that a request touches (64)"),
		OPT_NUMBER("load-ms", "N", &options->load_ms, 1, 1000000, "how long a sample takes at least (1000)"),
		OPT_NUMBER("pid", "PID", &options->pid, 1, INT_MAX,
			   "move all memory of this process instead, by migrate_pages(2), ..."),
		OPT_TEXT("command", "TEXT", &options->command,
			 "... until this shell command ends, whose output goes to CONFIG.ROUND.out"),
		OPT_NUMBER("samples", "N", &options->samples, 1, 100000, "timed rounds (10)"),
		OPT_NUMBER("warmup", "N", &options->warmup, 0, 100000, "rounds before them (1)"),
		OPT_NODE("from", &options->from, "where the memory starts (0)"),
		OPT_NODE("to", &options->to, "where it goes (1)"),
		OPT_CALL("config", "LABEL[:FILE=VALUE[,FILE=VALUE]...]", &options->configs, config_list_add,
			 "settings below /sys/kernel/mm/migration, written before each sample;\n"
			 "repeat it to compare: every round measures each in turn (stock:)"),
		{ 0 }
	};

	*options = (struct options){
		.bytes = (size_t)128 << 20, .threads = 1, .request_pages = 64, .load_ms = 1000, .samples = 10,
		.warmup = 1, .to = 1,
	};
	cmdline_parse(about, table, argc, argv);
	if (!options->configs.count)
		config_list_add(&options->configs, "stock:");
	if (options->bytes % PAGE_BYTES)
		die(EXIT_USAGE, "--bytes: %zu is no multiple of a page", options->bytes);
	if (options->memory == MEMORY_HUGETLB && options->bytes != FOLIO_ALIGN && options->bytes != HUGETLB_LARGEST)
		die(EXIT_USAGE, "--memory hugetlb: --bytes is the size of a folio, 2m or 1g");
	if (options->memory == MEMORY_HUGETLB && options->threads > 1)
		die(EXIT_USAGE, "--memory hugetlb: one thread only, since it discards what it wrote");
	if (options->from == options->to)
		die(EXIT_USAGE, "--from and --to are both %d: nothing would move", options->to);
	if (!options->pid != !options->command)
		die(EXIT_USAGE, "--pid PID and --command TEXT belong together");
}
