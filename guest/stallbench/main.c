// SPDX-License-Identifier: GPL-2.0
/* stallbench: how long do the users of memory wait while it moves from node to node all the time? */
#include <numa.h>
#include <numaif.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "counters.h"
#include "folio.h"
#include "full.h"
#include "hugetlb.h"
#include "json.h"
#include "migration.h"
#include "options.h"
#include "touch.h"
#include "util.h"

/* How long the folios of each batch stayed locked, of the reason of both move_pages(2) and migrate_pages(2). */
#define LOCKED_DIR MIGRATION_DIR "/stats/reasons/syscall_or_cpuset/locked"

struct bench {
	struct options options;
	struct touched touched;
	struct moveset set;
};

/* What one sample measured. The users' waiting is in *waits, or in the output of the command. */
struct sample {
	uint64_t ns;
	unsigned int legs;	/* moves of all memory to the other node */
	uint64_t failed;	/* pages that did not move */
	uint64_t requests;	/* of the touching threads */
	struct counters locked_before, locked_after;	/* none on a kernel without LOCKED_DIR */
};

/* Touch the memory while it moves there and back. */
static struct sample move_touched(struct bench *bench, struct histogram *waits)
{
	const struct options *options = &bench->options;
	uint64_t end = clock_ns() + options->load_ms * UINT64_C(1000000);
	struct sample sample = { 0 };

	do {
		uint64_t start;

		/* Nothing moves here, so that no thread waits for any. */
		if (options->full)
			full_renew();
		start = clock_ns();
		touch_start(&bench->touched);
		do {
			sample.failed += moveset_move(&bench->set, options->to, MPOL_MF_MOVE, 0).failed;
			sample.failed += moveset_move(&bench->set, options->from, MPOL_MF_MOVE, 0).failed;
			sample.legs += 2;
		} while (!options->full && clock_ns() < end);
		sample.requests += touch_stop(&bench->touched, waits);
		sample.ns += clock_ns() - start;
	} while (clock_ns() < end);
	return sample;
}

static pid_t start_command(const struct options *options, const char *output)
{
	pid_t child = fork();

	if (child)
		return child;
	if (!freopen(output, "w", stdout))
		die(EXIT_FAILED, "%s: %m", output);
	execl("/bin/sh", "sh", "-c", options->command, NULL);
	die(EXIT_FAILED, "sh: %m");
}

static void move_process(const struct options *options, int from, int to, struct sample *sample)
{
	struct bitmask *old = numa_allocate_nodemask(), *new = numa_allocate_nodemask();
	int left;

	numa_bitmask_setbit(old, from);
	numa_bitmask_setbit(new, to);
	left = numa_migrate_pages(options->pid, old, new);
	if (left < 0)
		die(EXIT_FAILED, "migrate_pages of process %u: %m", options->pid);
	numa_free_nodemask(old);
	numa_free_nodemask(new);
	sample->legs++;
	sample->failed += left;
}

/* Let the command use the process while its memory moves there and back. */
static struct sample move_other(const struct options *options, const char *output)
{
	uint64_t start = clock_ns();
	struct sample sample = { 0 };
	pid_t child = start_command(options, output);
	int status = 0;

	if (child < 0)
		die(EXIT_FAILED, "fork: %m");
	while (!waitpid(child, &status, WNOHANG)) {
		move_process(options, options->from, options->to, &sample);
		move_process(options, options->to, options->from, &sample);
	}
	sample.ns = clock_ns() - start;
	if (status)
		die(EXIT_FAILED, "'%s' ended with status %d", options->command,
		    WIFEXITED(status) ? WEXITSTATUS(status) : -1);
	return sample;
}

static void print_sample(const struct options *options, const struct config *config, unsigned int round,
			 const struct sample *sample, const struct histogram *waits, const char *output)
{
	bool warmup = round < options->warmup;
	struct json json;

	json_begin(&json, "sample");
	json_text(&json, "config", config->label);
	json_int(&json, "round", warmup ? round : round - options->warmup);
	json_flag(&json, "warmup", warmup);
	json_int(&json, "ns", sample->ns);
	json_int(&json, "round_trips", sample->legs / 2);
	json_int(&json, "pages_failed", sample->failed);
	counters_print(&json, "", &sample->locked_before, &sample->locked_after);
	if (options->pid) {
		json_text(&json, "output", output);
	} else {
		json_int(&json, "requests", sample->requests);
		json_int(&json, "p50_ns", histogram_percentile(waits, 500));
		json_int(&json, "p99_ns", histogram_percentile(waits, 990));
		json_int(&json, "p999_ns", histogram_percentile(waits, 999));
		json_int(&json, "max_ns", waits->longest);
		if (options->waits)
			json_int(&json, "waits", waits->total);
	}
	json_end(&json);
}

static char *open_hugetlb(const struct options *options)
{
	const int nodes[] = { options->from, options->to };
	char *base = hugetlb_map(options->bytes, options->bytes, nodes);

	if (!base)
		die(EXIT_MISSING, "nodes %d and %d cannot reserve a hugetlb folio of %zu bytes each", options->from,
		    options->to, options->bytes);
	node_bind(base, options->bytes, options->from);
	*base = 1;
	return base;
}

/* One entry a folio: the first page of a huge one moves all of it. */
static void open_memory(struct bench *bench)
{
	const struct options *options = &bench->options;
	size_t step = options->memory == MEMORY_BASE ? PAGE_BYTES : FOLIO_ALIGN;
	char *moved;

	touch_open(&bench->touched, options);
	if (bench->set.pages)
		moveset_free(&bench->set);
	if (options->memory == MEMORY_HUGETLB) {
		moved = open_hugetlb(options);
		step = options->bytes;
	} else {
		moved = bench->touched.base;
	}
	moveset_init(&bench->set, moved, options->bytes, step);
}

static void take_sample(struct bench *bench, const struct config *config, unsigned int round)
{
	static struct histogram waits;
	struct counters before = { 0 };
	struct sample sample;
	char output[128];

	waits = (struct histogram){ 0 };
	config_apply(config);
	snprintf(output, sizeof(output), "%s.%u.out", config->label, round);
	counters_read_dir(&before, "locked_", LOCKED_DIR);
	if (bench->options.pid) {
		sample = move_other(&bench->options, output);
	} else {
		/* A huge page that was split stays so. */
		if (bench->options.memory == MEMORY_HUGE || bench->options.memory == MEMORY_TMPFS)
			open_memory(bench);
		sample = move_touched(bench, &waits);
	}
	sample.locked_before = before;
	counters_read_dir(&sample.locked_after, "locked_", LOCKED_DIR);
	print_sample(&bench->options, config, round, &sample, &waits, output);
}

int main(int argc, char **argv)
{
	static struct bench bench;
	const struct options *options = &bench.options;
	struct json json;

	options_parse(&bench.options, argc, argv);
	if (geteuid())
		die(EXIT_MISSING, "needs root: it changes settings of the kernel, and moves other processes' memory");
	node_require("--from", options->from);
	node_require("--to", options->to);
	config_list_try(&options->configs);
	if (!options->pid)
		open_memory(&bench);
	if (options->full)
		full_open(options->to);
	for (unsigned int round = 0; round < options->warmup + options->samples; round++)
		for (size_t i = 0; i < options->configs.count; i++)
			take_sample(&bench, &options->configs.all[i], round);
	json_begin(&json, "end");
	json_end(&json);
	return EXIT_PASSED;
}
