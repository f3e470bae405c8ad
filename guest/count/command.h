/* SPDX-License-Identifier: GPL-2.0 */
#ifndef COUNT_COMMAND_H
#define COUNT_COMMAND_H

/*
 * Run a command, which is found by PATH, and wait for it. Returns its exit status as a shell would give it: 128 and the
 * number of the signal if one killed it, 126 if it cannot be run, 127 if there is none. This program ignores the
 * terminal's signals meanwhile, which the command gets, too.
 */
int command_run(char **argv);

#endif
