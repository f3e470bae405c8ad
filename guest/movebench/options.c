// SPDX-License-Identifier: GPL-2.0
#include "options.h"

#include "cmdline.h"
#include "folio.h"
#include "hugetlb.h"
#include "memory.h"
#include "util.h"

const char *const kind_names[] = {
	[KIND_ANON] = "anon", [KIND_SHMEM] = "shmem", [KIND_FILE] = "file", [KIND_SWAPCACHE] = "swapcache",
	[KIND_HUGETLB] = "hugetlb", NULL,
};

const char *const order_names[] = {
	[ORDER_SEQUENTIAL] = "sequential", [ORDER_RANDOM] = "random", [ORDER_EVERY8] = "every8", NULL,
};

static const char about[] =
	"movebench [OPTION]...\n"
	"Move memory from one node to another and back with move_pages(2); time it; print JSON lines.";

static void check_folio(const struct options *options)
{
	size_t folio = options->folio_bytes;

	if (options->kind == KIND_HUGETLB) {
		if (folio != FOLIO_ALIGN && folio != HUGETLB_LARGEST)
			die(EXIT_USAGE, "--kind hugetlb: in folios of 2m or 1g only");
	} else if (folio < PAGE_BYTES || folio > FOLIO_ALIGN || folio & (folio - 1)) {
		die(EXIT_USAGE, "--folio: %zu bytes is no power of two from 4k to 2m", folio);
	}
	if (options->read_only && (options->kind != KIND_ANON || memory_must_renew(options)))
		die(EXIT_USAGE, "--read-only: for anonymous memory in folios of 4k or 2m only");
	if (options->kind == KIND_SWAPCACHE && folio != PAGE_BYTES)
		die(EXIT_USAGE, "--kind swapcache: memory comes back from swap in 4k folios only");
}

static void check_together(const struct options *options)
{
	size_t folio = options->folio_bytes;

	check_folio(options);
	if (options->bytes % folio)
		die(EXIT_USAGE, "--bytes: %zu is no multiple of the folio's %zu", options->bytes, folio);
	if (options->bytes / PAGE_BYTES * order_step(options->order) > STAMP_PAGES)
		die(EXIT_USAGE, "--bytes: more than %u pages", STAMP_PAGES);
	if (options->from == options->to)
		die(EXIT_USAGE, "--from and --to are both %d: nothing would move", options->to);
	if ((options->kind == KIND_FILE) != !!options->file)
		die(EXIT_USAGE, "--file PATH and --kind file belong together");
}

void options_parse(struct options *options, int argc, char **argv)
{
	const struct cmdline_option table[] = {
		OPT_SIZE("folio", &options->folio_bytes, "size of a folio, 4k to 2m, or 1g of hugetlb (4k)"),
		OPT_SIZE("bytes", &options->bytes, "how much to move (64m)"),
		OPT_NUMBER("samples", "N", &options->samples, 1, 100000, "timed rounds (10)"),
		OPT_NUMBER("warmup", "N", &options->warmup, 0, 100000, "rounds before them (2)"),
		OPT_NODE("from", &options->from, "where the memory starts (0)"),
		OPT_NODE("to", &options->to, "where it goes (1)"),
		OPT_CHOICE("kind", "KIND", &options->kind, kind_names, "anon, shmem, file, swapcache or hugetlb (anon)"),
		OPT_TEXT("file", "PATH", &options->file,
			 "the file for --kind file; created, overwritten and removed"),
		OPT_NUMBER("pages-per-call", "N", &options->pages_per_call, 1, 1 << 30,
			   "addresses in one call (all)"),
		OPT_CHOICE("order", "ORDER", &options->order, order_names,
			   "sequential, random, or every8: one folio of eight (sequential)"),
		OPT_FLAG("read-only", &options->read_only,
			 "map the memory read-only once it is filled (anon of 4k, or 2m)"),
		OPT_NUMBER("settle-ms", "MS", &options->settle_ms, 0, 1000,
			   "sleep before each move, so that others end what they do (0)"),
		OPT_NUMBER("unmeasured", "N", &options->unmeasured, 0, 100000,
			   "moves there and back before each sample, that are in none (0)"),
		OPT_NUMBER("cpu-hogs", "N", &options->cpu_hogs, 0, 4096,
			   "threads that keep CPUs busy, one pinned per CPU (0)"),
		OPT_CALL("config", "LABEL[:FILE=VALUE[,FILE=VALUE]...]", &options->configs, config_list_add,
			 "settings below /sys/kernel/mm/migration, or debugfs:FILE=VALUE below\n"
			 "/sys/kernel/debug, written before each sample;\n"
			 "repeat it to compare: every round measures each in turn (stock:)"),
		{ 0 }
	};

	*options = (struct options){
		.folio_bytes = PAGE_BYTES, .bytes = (size_t)64 << 20, .samples = 10, .warmup = 2, .to = 1,
	};
	cmdline_parse(about, table, argc, argv);
	if (!options->configs.count)
		config_list_add(&options->configs, "stock:");
	check_together(options);
}
