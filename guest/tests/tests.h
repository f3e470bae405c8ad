/* SPDX-License-Identifier: GPL-2.0 */
/* The tests of the guest programs. */
#ifndef TESTS_H
#define TESTS_H

#include <stdbool.h>

/* Print one result; if it is false, the program fails. */
void check_true(bool held, const char *what);

/* Test stale_tlb/result.c: the reports that pass and those that fail. */
void test_stale_tlb_result(void);

#endif
