# SPDX-License-Identifier: GPL-2.0
"""KUnit and the guest suites in small on another architecture's debug kernel; skipped where it cannot be."""

from __future__ import annotations

import dataclasses

from ferry.suites import flips, guest_boot, integrity, kunit, selftests
from ferry.suites.context import Context
from ferry.suites.result import Result

NAME = "arm64"
BOARD = "zcu102"


def run(context: Context) -> list[Result]:
    context = dataclasses.replace(context, quick=True)
    units = kunit.run_on(context, f"{NAME}-kunit", context.board)
    kernel = guest_boot.debug_kernel(context)
    jobs = [job for suite in (selftests, integrity, flips) for job in suite.jobs(context, kernel)]
    found = guest_boot.run_jobs(context, kernel, jobs, NAME)
    return [dataclasses.replace(result, suite=NAME) for result in (*units, *found)]
