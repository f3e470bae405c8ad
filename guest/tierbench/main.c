// SPDX-License-Identifier: GPL-2.0
/* tierbench: how fast are the users of memory that is promoted and demoted between two tiers? */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cgroup.h"
#include "counters.h"
#include "damon.h"
#include "folio.h"
#include "json.h"
#include "migration.h"
#include "options.h"
#include "policy.h"
#include "sysfs.h"
#include "tenants.h"
#include "util.h"

#define NS_PER_MS UINT64_C(1000000)
/* Readings of the counters, which come to rest within a few: what moves pages while the tenants rest ends soon. */
#define TRIES 400

struct state {
	struct counters counters;
	struct migration_pages pages;
	struct damon_moved damon;
};

struct sample {
	struct state before, after;
	uint64_t ns;
	char output[160];	/* the file with the command's, if there is one */
};

static void state_read(struct state *state, enum policy policy)
{
	if (policy == POLICY_DAMON)
		state->damon = damon_moved();
	/* Each CPU has counts of its own of what moves between the tiers, which are added up once a second, or now. */
	if (!sysfs_write("/proc/sys/vm/stat_refresh", "1"))
		die(EXIT_FAILED, "stat_refresh: %m");
	counters_read_at_rest(&state->counters, TRIES);
	migration_pages_read(&state->pages, "");
}

/* Let the tenants touch their memory, while their hot sets move. */
static void run_tenants(const struct options *options, struct sample *sample)
{
	uint64_t start = clock_ns(), end = start + options->load_ms * NS_PER_MS, now = start;

	tenants_resume();
	while (now < end) {
		uint64_t rest = options->shift_ms * NS_PER_MS;

		tenants_shift();
		sleep_ns(rest < end - now ? rest : end - now);
		tenants_check();
		now = clock_ns();
	}
	tenants_pause();
	sample->ns = clock_ns() - start;
}

static _Noreturn void execute(const char *command, unsigned int shift, const char *output)
{
	char value[16];

	snprintf(value, sizeof(value), "%u", shift);
	if (!setenv("SHIFT", value, 1) && freopen(output, "w", stdout))
		execl("/bin/sh", "sh", "-c", command, NULL);
	_exit(EXIT_FAILED);
}

/* Let the command use the process. */
static void run_command(const struct options *options, struct sample *sample)
{
	static unsigned int shift;
	uint64_t start = clock_ns();
	int status;
	pid_t child = fork();

	if (!child)
		execute(options->command, shift, sample->output);
	shift++;
	if (child < 0 || waitpid(child, &status, 0) < 0)
		die(EXIT_FAILED, "cannot run '%s': %m", options->command);
	sample->ns = clock_ns() - start;
	if (status)
		die(EXIT_FAILED, "'%s' ended with status %d", options->command,
		    WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

static void print_touches(struct json *json, unsigned int tenants)
{
	static struct histogram all;

	all = (struct histogram){ 0 };
	for (unsigned int i = 0; i < tenants; i++) {
		const struct histogram *one = tenant_histogram(i);
		char key[32];

		snprintf(key, sizeof(key), "touches_%u", i);
		json_int(json, key, one->total);
		histogram_merge(&all, one);
	}
	json_int(json, "p50_ns", histogram_percentile(&all, 500));
	json_int(json, "p99_ns", histogram_percentile(&all, 990));
	json_int(json, "p999_ns", histogram_percentile(&all, 999));
	json_int(json, "max_ns", all.longest);
}

/* Those of any policy: the others are off. */
static void print_moves(struct json *json, const struct sample *sample)
{
	static const char *const demoted[] = {
		"pgdemote_kswapd", "pgdemote_direct", "pgdemote_khugepaged", "pgdemote_proactive",
	};
	const struct counters *before = &sample->before.counters, *after = &sample->after.counters;
	uint64_t demotions = sample->after.damon.cold - sample->before.damon.cold;

	for (size_t i = 0; i < ARRAY_SIZE(demoted); i++)
		demotions += counters_delta(before, after, demoted[i]);
	json_int(json, "promotions", counters_delta(before, after, "pgpromote_success") +
		 sample->after.damon.hot - sample->before.damon.hot);
	json_int(json, "demotions", demotions);
	counters_print(json, "", before, after);
	migration_pages_print(json, &sample->before.pages, &sample->after.pages);
}

static void print_sample(const struct options *options, const struct config *config, unsigned int round,
			 const struct sample *sample)
{
	bool warmup = round < options->warmup;
	struct json json;

	json_begin(&json, "sample");
	json_text(&json, "policy", policy_name(options->policy));
	json_text(&json, "config", config->label);
	json_int(&json, "round", warmup ? round : round - options->warmup);
	json_flag(&json, "warmup", warmup);
	json_int(&json, "ns", sample->ns);
	if (options->pid)
		json_text(&json, "output", sample->output);
	else
		print_touches(&json, options->tenants);
	print_moves(&json, sample);
	json_end(&json);
}

static void take_sample(const struct options *options, const struct config *config, unsigned int round)
{
	static struct sample sample;

	config_apply(config);
	snprintf(sample.output, sizeof(sample.output), "%s.%s.%u.out", policy_name(options->policy), config->label,
		 round);
	state_read(&sample.before, options->policy);
	if (options->pid)
		run_command(options, &sample);
	else
		run_tenants(options, &sample);
	state_read(&sample.after, options->policy);
	print_sample(options, config, round, &sample);
}

static void start_tenants(const struct options *options)
{
	const struct tenants_memory each = {
		.bytes = options_each_bytes(options),
		.hot_bytes = options->hot_bytes,
		.renew_on = options->policy == POLICY_RECLAIM ? options->from : -1,
	};
	bool cgroups = cgroup_available();
	struct json json;

	tenants_start(options->tenants, &each, cgroups);
	json_begin(&json, "start");
	json_int(&json, "tenants", options->tenants);
	json_int(&json, "bytes_each", each.bytes);
	json_int(&json, "hot_bytes", each.hot_bytes);
	json_flag(&json, "cgroups", cgroups);
	json_int(&json, "free_fast_kb", node_free_kb(options->from));
	json_int(&json, "free_slow_kb", node_free_kb(options->to));
	json_end(&json);
}

int main(int argc, char **argv)
{
	static struct options options;
	struct json json;

	options_parse(&options, argc, argv);
	if (geteuid())
		die(EXIT_MISSING, "needs root: it changes settings of the kernel");
	node_require("--from", options.from);
	node_require("--to", options.to);
	config_list_try(&options.configs);
	policy_apply(&options);
	if (!options.pid)
		start_tenants(&options);
	for (unsigned int round = 0; round < options.warmup + options.samples; round++)
		for (size_t i = 0; i < options.configs.count; i++)
			take_sample(&options, &options.configs.all[i], round);
	json_begin(&json, "end");
	json_end(&json);
	return EXIT_PASSED;
}
