// SPDX-License-Identifier: GPL-2.0
#include "command.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util.h"

#define STATUS_NOT_RUN 126
#define STATUS_NOT_FOUND 127

static _Noreturn void execute(char **argv, const struct sigaction *interrupt, const struct sigaction *quit)
{
	int error;

	sigaction(SIGINT, interrupt, NULL);
	sigaction(SIGQUIT, quit, NULL);
	execvp(argv[0], argv);
	error = errno;
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, argv[0], strerror(error));
	_exit(error == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_RUN);
}

int command_run(char **argv)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN }, interrupt, quit;
	int status = 0;
	pid_t child;

	sigaction(SIGINT, &ignore, &interrupt);
	sigaction(SIGQUIT, &ignore, &quit);
	child = fork();
	if (!child)
		execute(argv, &interrupt, &quit);
	if (child < 0 || waitpid(child, &status, 0) < 0)
		die(EXIT_FAILED, "cannot run %s: %m", argv[0]);
	sigaction(SIGINT, &interrupt, NULL);
	sigaction(SIGQUIT, &quit, NULL);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
