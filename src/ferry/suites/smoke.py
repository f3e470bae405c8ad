# SPDX-License-Identifier: GPL-2.0
"""The guest suites in small, all in one boot: what daily work can afford."""

from __future__ import annotations

import dataclasses

from ferry.suites import guest_boot, integrity, kunit, module_switch, selftests
from ferry.suites.context import Context
from ferry.suites.result import Result

NAME = "smoke"


def run(context: Context) -> list[Result]:
    kernel = guest_boot.debug_kernel(context)
    jobs = [job for suite in (selftests, integrity, module_switch) for job in suite.jobs(context, kernel)]
    return guest_boot.run_jobs(context, kernel, jobs, NAME)


ARM64_NAME = "smoke"
ARM64_BOARD = "zcu102"


def run_arm64(context: Context) -> list[Result]:
    context = dataclasses.replace(context, quick=True)
    units = kunit.run_on(context, f"{ARM64_NAME}-kunit", context.board)
    kernel = guest_boot.debug_kernel(context)
    jobs = [job for suite in (selftests, integrity, module_switch) for job in suite.jobs(context, kernel)]
    found = guest_boot.run_jobs(context, kernel, jobs, ARM64_NAME)
    return [dataclasses.replace(result, suite=ARM64_NAME) for result in (*units, *found)]
