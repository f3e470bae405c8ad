/* SPDX-License-Identifier: GPL-2.0 */
/* One clear error and an exit status, the same in every guest program. */
#ifndef GUEST_QUIT_H
#define GUEST_QUIT_H

enum exit_status {
	EXIT_PASSED = 0,
	EXIT_FAILED = 1,	/* something that must hold did not */
	EXIT_USAGE = 2,		/* the command line asks for nonsense */
	EXIT_MISSING = 4,	/* this kernel or machine lacks a feature; also kselftest's "skipped" */
};

/* Print "PROGRAM: message" on stderr and exit. %m names errno. */
_Noreturn void quit(enum exit_status status, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
