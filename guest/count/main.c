// SPDX-License-Identifier: GPL-2.0
/* count: run a command, and print by how much the kernel's counters of migration and of TLB flushes grew meanwhile. */
#include <fcntl.h>
#include <unistd.h>

#include "cmdline.h"
#include "command.h"
#include "counters.h"
#include "folio.h"
#include "json.h"
#include "migration.h"
#include "util.h"

static const char about[] =
	"count [OPTION]... [--] COMMAND [ARGUMENT]...\n"
	"Run the command; then print one JSON line: by how much the counters of migration, of TLB flushes\n"
	"and of their interrupts grew, on all CPUs and for all processes. Flushes that migrc deferred are\n"
	"done before the counters are read. The exit status is the command's: 128 and the signal's number\n"
	"if one killed it, 126 or 127 if it cannot be run.";

struct options {
	const char *output;
	struct migrc_config migrc;
	char **command;
};

static void parse(struct options *options, int argc, char **argv)
{
	const struct cmdline_option table[] = {
		OPT_TEXT("output", "PATH", &options->output, "where the line goes (stderr)"),
		OPT_NUMBER("defer-flush", "0|1", &options->migrc.enabled, 0, 1,
			   "whether the kernel may defer TLB flushes (as it is)"),
		OPT_SIZE("max-bytes", &options->migrc.max_bytes, "of the quarantine (as it is)"),
		OPT_NUMBER("max-age-ms", "N", &options->migrc.max_age_ms, 1, 60000,
			   "of a page in the quarantine (as it is)"),
		{ 0 }
	};

	*options = (struct options){ .migrc.enabled = -1 };
	options->command = cmdline_parse_command(about, table, argc, argv);
}

/* A descriptor for the line, opened before the command runs, so that its time is not lost. */
static int open_output(const char *path)
{
	int fd = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644) :
			fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);

	if (fd < 0)
		die(EXIT_USAGE, "--output %s: %m", path ? path : "");
	return fd;
}

int main(int argc, char **argv)
{
	static struct counters before, after;
	struct options options;
	struct json json;
	uint64_t ns;
	int fd, status;

	parse(&options, argc, argv);
	fd = open_output(options.output);
	migrc_apply(&options.migrc);
	migrc_write("drain", "1");
	counters_read(&before);
	ns = clock_ns();
	status = command_run(options.command);
	ns = clock_ns() - ns;
	migrc_write("drain", "1");
	counters_read(&after);
	/* Standard output is the command's. */
	if (dup2(fd, STDOUT_FILENO) < 0)
		die(EXIT_FAILED, "--output: %m");
	json_begin(&json, "count");
	json_text(&json, "command", options.command[0]);
	json_int(&json, "status", status);
	json_int(&json, "elapsed_ns", ns);
	migrc_print(&json);
	counters_print(&json, "", &before, &after);
	json_end(&json);
	return status;
}
