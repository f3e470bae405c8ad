// SPDX-License-Identifier: GPL-2.0
#include "quit.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void quit(enum exit_status status, const char *format, ...)
{
	char line[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	fflush(stdout);
	fprintf(stderr, "%s: %s\n", program_invocation_short_name, line);
	exit(status);
}
