// SPDX-License-Identifier: GPL-2.0
#include "options.h"

#include "cmdline.h"
#include "folio.h"
#include "processes.h"
#include "util.h"
#include "workload.h"

#define DEFAULT_CALLS_PER_SECOND 1000

static const char about[] =
	"tlbbench --workload NAME [OPTION]...\n"
	"Move memory between two nodes while a thread on each CPU reads it; count the TLB flushes that\n"
	"this costs; print JSON lines. One run is one sample.";

static void set_workload(void *data, const char *name)
{
	struct options *options = data;

	options->workload = workload_find(name);
	if (!options->workload)
		die(EXIT_USAGE, "--workload: '%s' is none of " WORKLOAD_NAMES, name);
}

/* Defaults that depend on the workload. */
static void fill_in(struct options *options)
{
	const struct workload *workload = options->workload;

	if (!options->bytes)
		options->bytes = workload->bytes ? workload->bytes : compaction_bytes(options->from);
	if (!options->bytes)
		die(EXIT_MISSING, "--from: node %d has no free memory to fill", options->from);
	if (workload->tiered)
		options->kind = TARGET_ANON;
	if (!workload->moves && options->moves)
		die(EXIT_USAGE, "--moves: the number cannot be chosen for %s", workload->name);
	if (!options->moves)
		options->moves = workload->moves;
	if (!workload->lookups && (options->lookups || options->flat))
		die(EXIT_USAGE, "--lookups and --flat are options of xslookup");
	if (!options->lookups)
		options->lookups = workload->lookups;
	if (!options->readers)
		options->readers = cpus_usable();
	if (!workload->processes && options->processes)
		die(EXIT_USAGE, "--processes is an option of active");
	if (!options->processes)
		options->processes = workload->processes;
	if (!workload->processes && options->calls_per_second)
		die(EXIT_USAGE, "--calls-per-second is an option of active");
	if (!options->calls_per_second)
		options->calls_per_second = DEFAULT_CALLS_PER_SECOND;
	if (!workload->order && options->order)
		die(EXIT_USAGE, "--order is an option of kcompactd");
	if (!options->order)
		options->order = workload->order;
}

static void check_together(const struct options *options)
{
	if (options->from == options->to)
		die(EXIT_USAGE, "--from and --to are both %d: nothing would move", options->to);
	if (options->bytes % FOLIO_ALIGN)
		die(EXIT_USAGE, "--bytes: %zu is no multiple of 2m", options->bytes);
	if (options->bytes / PAGE_BYTES > STAMP_PAGES)
		die(EXIT_USAGE, "--bytes: more than %u pages", STAMP_PAGES);
}

void options_parse(struct options *options, int argc, char **argv)
{
	const struct cmdline_option table[] = {
		OPT_CALL("workload", "NAME", options, set_workload,
			 "move_pages, compaction, hinting,\n"
			 "active (processes that read also allocate, free and protect memory),\n"
			 "kcompactd (folios are allocated from a node that is fragmented),\n"
			 "xslookup (random lookups in a table that the kernel promotes and demotes)"),
		OPT_CHOICE("kind", "KIND", &options->kind, target_kind_names,
			   "file, anon or both halves (both); hinting has anonymous memory only"),
		OPT_SIZE("bytes", &options->bytes,
			 "memory that is read, a multiple of 2m (32m; active 4m, hinting 128m,\n"
			 "xslookup 256m, compaction and kcompactd 7/8 of what is free on --from)"),
		OPT_NUMBER("moves", "N", &options->moves, 1, 1u << 30,
			   "page moves to make (16384; active 2048, kcompactd 4096, hinting 32768);\n"
			   "with compaction and xslookup the kernel decides how many pages move"),
		OPT_NUMBER("processes", "N", &options->processes, 1, MAX_PROCESSES, "active: processes that read (4)"),
		OPT_NUMBER("calls-per-second", "N", &options->calls_per_second, 1, 100000,
			   "active: of each process at most (1000)"),
		OPT_NUMBER("order", "N", &options->order, 2, 9, "kcompactd: of the folios that are allocated (9)"),
		OPT_NUMBER("lookups", "N", &options->lookups, 1, UINT32_MAX, "xslookup: by each thread (100000)"),
		OPT_NODE("from", &options->from, "where the memory starts; hinting, xslookup: the fast node (0)"),
		OPT_NODE("to", &options->to, "where it goes; hinting, xslookup: the slow node (1)"),
		OPT_FLAG("flat", &options->flat,
			 "xslookup: leave NUMA balancing and demotion as they are; the nodes need\n"
			 "not be memory tiers"),
		OPT_TEXT("file", "PATH", &options->file,
			 "the file; created, overwritten and removed (/dev/shm/tlbbench)"),
		OPT_NUMBER("readers", "N", &options->readers, 1, 4096,
			   "threads that read, one pinned per CPU (as many as there are CPUs)"),
		OPT_NUMBER("limit-s", "N", &options->limit_s, 1, 36000,
			   "active, kcompactd, hinting: how long to wait for the moves (60)"),
		OPT_NUMBER("defer-flush", "0|1", &options->migrc.enabled, 0, 1,
			   "whether the kernel may defer TLB flushes (as it is)"),
		OPT_SIZE("max-bytes", &options->migrc.max_bytes, "of the quarantine (as it is)"),
		OPT_NUMBER("max-age-ms", "N", &options->migrc.max_age_ms, 1, 60000,
			   "of a page in the quarantine (as it is)"),
		OPT_NUMBER("round", "N", &options->round, 0, 1000000,
			   "a number to print with the sample; xslookup: and the seed of the lookups (0)"),
		{ 0 }
	};

	*options = (struct options){
		.kind = TARGET_BOTH, .file = "/dev/shm/tlbbench", .to = 1, .limit_s = 60,
		.migrc.enabled = -1,
	};
	cmdline_parse(about, table, argc, argv);
	if (!options->workload)
		die(EXIT_USAGE, "--workload is missing; see tlbbench --help");
	fill_in(options);
	check_together(options);
}
