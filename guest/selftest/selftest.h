/* SPDX-License-Identifier: GPL-2.0 */
#ifndef SELFTEST_H
#define SELFTEST_H

#include <stdbool.h>

/* One result; any that does not hold fails the program. */
void expect(bool held, const char *what);

/* Of litmus: what makes a case pass or fail. */
void test_verdict(void);

#endif
