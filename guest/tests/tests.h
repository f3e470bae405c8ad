/* SPDX-License-Identifier: GPL-2.0 */
/* The tests of the guest programs. */
#ifndef TESTS_H
#define TESTS_H

#include <stdbool.h>

/* Print one result; if it is false, the program fails. */
void check_true(bool held, const char *what);

/* The exit status of a function that may end the program. */
int status_of(void (*function)(void));

/* Test stale_tlb/result.c: the reports that pass and those that fail. */
void test_stale_tlb_result(void);

/* Test movebench/options.c: which folio sizes go with which kind of memory. */
void test_movebench_options(void);

#endif
