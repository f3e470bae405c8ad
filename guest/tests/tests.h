/* SPDX-License-Identifier: GPL-2.0 */
#ifndef TESTS_H
#define TESTS_H

#include <stdbool.h>

/* One result; any that does not hold fails the program. */
void check_true(bool held, const char *what);

/* Of litmus: what makes a case pass or fail. */
void test_verdict(void);

#endif
